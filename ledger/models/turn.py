"""When a provider may be asked next, whoever asks it."""

from __future__ import annotations

from django.db import models


class Turn(models.Model):
    """The next turn at one host, or of whom nothing is to be asked or sent for a while: an account that wants
    to be left alone, a provider that was not there. One for all processes and tenants, so of no tenant."""

    name = models.CharField(max_length=400, primary_key=True, db_collation="C")
    free_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
