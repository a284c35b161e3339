"""When a provider may be asked next, whoever asks it."""

from __future__ import annotations

from django.db import models


class Turn(models.Model):
    """The next turn at one host, or of one account that wants to be left alone. One rate for all processes
    and all tenants, so of no tenant."""

    name = models.CharField(max_length=400, primary_key=True, db_collation="C")
    free_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
