"""What the web server imports."""

import os

from django.core.wsgi import get_wsgi_application

from ledger.apps import no_fault_point_in_production

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()

if faults := no_fault_point_in_production():
    raise SystemExit(str(faults[0]))
