"""Which app answers which address."""

from django.urls import include, path

from config import health

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("api/v1/", include("ledger.ingest.urls")),
    path("", include("dashboard.urls")),
]
