#!/usr/bin/env python
"""The one way in: `python manage.py up` runs everything, `python manage.py help` lists the rest."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.management import execute_from_command_line  # noqa: PLC0415
    except ImportError:
        sys.exit("Django is not installed for this Python; README.md's first command sets everything up.")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
