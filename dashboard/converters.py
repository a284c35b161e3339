"""Decisions in addresses: `confirm-happened` for confirm_happened."""

from __future__ import annotations

from ledger.rules.vocabulary import DecisionKind


class DecisionConverter:
    regex = "[a-z-]+"

    def to_python(self, value: str) -> DecisionKind:
        return DecisionKind(value.replace("-", "_"))

    def to_url(self, value: DecisionKind) -> str:
        return value.value.replace("_", "-")
