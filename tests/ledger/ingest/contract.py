"""The served OpenAPI document, to which every answer a test gets is held."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

import httpx
from jsonschema_rs import Draft202012Validator

from tests.support.api import PREFIX

EVERYWHERE = {405}
"""Answers no call declares: they are about the address, not the call."""


@dataclass(frozen=True)
class Contract:
    """What the document promises."""

    document: dict[str, Any]

    @classmethod
    def served_by(cls, address: str) -> Self:
        return cls(httpx.get(f"{address}{PREFIX}/openapi.json", trust_env=False).raise_for_status().json())

    def check(self, answer: httpx.Response) -> None:
        """Fail unless status, media type, headers and body are as declared for this call."""
        answer.read()
        call = self.call_of(answer.request.method, answer.request.url.path)
        if call is None or answer.status_code in EVERYWHERE:
            return
        declared = call["responses"].get(str(answer.status_code))
        assert declared, (
            f"{answer.request.method} {answer.request.url.path}: {answer.status_code} is undeclared"
        )
        media_type = answer.headers["content-type"].partition(";")[0]
        assert media_type in declared["content"], media_type
        self._check_body(declared["content"][media_type]["schema"], answer.json())
        undeclared = {"retry-after", "idempotent-replayed", "www-authenticate", "preference-applied"} & set(
            answer.headers
        )
        assert undeclared <= {name.lower() for name in declared["headers"]}

    def call_of(self, method: str, path: str) -> dict[str, Any] | None:
        """What the document says of this call; None where it says nothing."""
        for template, calls in self.document["paths"].items():
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
                found: dict[str, Any] | None = calls.get(method.lower())
                return found
        return None

    def _check_body(self, schema: dict[str, Any], body: object) -> None:
        whole = {**schema, "components": self.document["components"]}
        Draft202012Validator(whole, validate_formats=True).validate(body)
