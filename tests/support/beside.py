"""Commands of ours as processes beside a test, on its database."""

from __future__ import annotations

import os
import subprocess
import sys

from django.db import connection

from tests.support.serving import ROOT


def database_url_of_tests() -> str:
    """The address of the database this connection speaks to."""
    named = connection.settings_dict
    return f"postgresql://{named['USER']}@/{named['NAME']}?host={named['HOST']}&port={named['PORT'] or 5432}"


def start_command(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """`manage.py` with these arguments; what it prints is of no interest."""
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url_of_tests(), **environment},
        stdout=subprocess.DEVNULL,
    )
