"""The pages of the review desk."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "dashboard"
