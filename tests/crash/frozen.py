"""`python -m tests.crash.frozen POINT COMMAND …`: a command of manage.py that is stopped, not killed, at a
fault point, and goes on when it is continued."""

from __future__ import annotations

import os
import signal
import sys

from django.core.management import execute_from_command_line

from ledger import faults


def main(point: str, *command: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    faults.watchers.append(lambda passed: os.kill(os.getpid(), signal.SIGSTOP) if passed == point else None)
    execute_from_command_line(["manage.py", *command])


if __name__ == "__main__":
    main(*sys.argv[1:])
