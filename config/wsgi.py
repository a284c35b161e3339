"""What the web server imports."""

import os

from django.core.checks import run_checks
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()

if faults := [check for check in run_checks() if check.id == "ledger.E001"]:
    raise SystemExit(str(faults[0]))
