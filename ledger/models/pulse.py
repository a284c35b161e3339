"""When each part of the system last did its work."""

from __future__ import annotations

from django.db import models


class Pulse(models.Model):
    """One part of the system (sweep, reconcile, scheduler) and when it last ran to its end. Of no tenant."""

    name = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
