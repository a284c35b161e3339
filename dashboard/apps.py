"""The pages of the review desk."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        from dashboard import reauthentication  # noqa: F401, PLC0415 - it listens to sign-ins
