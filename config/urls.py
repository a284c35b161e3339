"""Which app answers which address, and which page what went wrong."""

from django.urls import include, path

from config import health
from config.metrics import metrics

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics),
    path("api/v1/", include("ledger.ingest.urls")),
    path("", include("dashboard.urls")),
]

handler400 = "dashboard.errors.bad_request"
handler403 = "dashboard.errors.forbidden"
handler404 = "dashboard.errors.not_found"
handler500 = "config.errors.failed"
