#!/usr/bin/env python
"""The one way in: `python manage.py up` runs everything, `python manage.py help` lists the rest."""

import os
import sys

UNAVAILABLE = 5


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.management import execute_from_command_line  # noqa: PLC0415
        from django.db import OperationalError  # noqa: PLC0415
    except ImportError:
        sys.exit("Django is not installed for this Python; README.md's first command sets everything up.")
    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) is not None:
            raise
        print(
            f"The database does not answer: {error}\n"
            "Start everything with `python manage.py up`, or set DATABASE_URL to a running PostgreSQL.",
            file=sys.stderr,
        )
        sys.exit(UNAVAILABLE)


if __name__ == "__main__":
    main()
