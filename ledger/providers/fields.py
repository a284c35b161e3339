"""Reading an adapter's configuration: JSON in, checked values out, every mistake named with its place."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from ledger.providers.base import AdapterMisconfigured
from ledger.providers.templates import problem_with
from ledger.rules.pointers import below, is_pointer

RecordState = Literal["done", "in_progress", "failed", "reversed"]
Word = TypeVar("Word", bound=str)

MOST_PAGES = 100
USUAL_PAGES = 20
USUAL_RATE_PER_S = 10.0
DAY_S = 86_400.0
USUAL_MARGIN_S = 3_600.0
LONGEST_MARGIN_S = 30 * DAY_S

# So that nobody who may configure a provider can have the ledger's own secrets sent to it.
SECRET_NAME = re.compile(r"PROVIDER_[A-Z0-9_]+", re.ASCII)
HEADER_NAME = re.compile(r"[A-Za-z0-9-]+", re.ASCII)


@dataclass(frozen=True)
class Auth:
    """Which environment variable holds the secret, and the header that carries it."""

    env: str
    header: str = "Authorization"
    prefix: str = "Bearer "

    def secret(self) -> str:
        """The secret itself. Raises AdapterMisconfigured where it is not set."""
        return from_environment(self.env)


class Fields:
    """One object of the configuration, read field by field; what nobody reads is refused at the end."""

    def __init__(self, path: str, value: object) -> None:
        if not isinstance(value, Mapping):
            raise AdapterMisconfigured(path or "/", "an object is needed here")
        self.path = path
        self.values: dict[str, Any] = dict(value)

    def at(self, name: str) -> str:
        return below(self.path, name)

    def take(self, name: str, usual: object = None) -> Any:
        return self.values.pop(name, usual)

    def needed(self, name: str) -> Fields:
        return Fields(self.at(name), self.take(name))

    def inner(self, name: str) -> Fields | None:
        return self.needed(name) if name in self.values else None

    def text(self, name: str, usual: str | None = None) -> str:
        value = self.take(name, usual)
        if not isinstance(value, str) or not value.isprintable():
            raise AdapterMisconfigured(self.at(name), "a printable text is needed here")
        return value

    def matching(self, name: str, shape: re.Pattern[str], what: str, usual: str | None = None) -> str:
        """A text of this shape; `what` is how a mistake names it."""
        text = self.text(name, usual)
        if not shape.fullmatch(text):
            raise AdapterMisconfigured(self.at(name), f"{what} is needed here")
        return text

    def one_of(self, name: str, words: Sequence[Word], usual: Word | None = None) -> Word:
        value = self.take(name, usual)
        if value not in words:
            raise AdapterMisconfigured(self.at(name), f"one of {', '.join(words)} is needed here")
        return cast("Word", value)

    def pointer(self, name: str, *, whole: bool = False) -> str:
        return pointer_at(self.at(name), self.take(name), whole=whole)

    def number(self, name: str, usual: float, *, least: float, most: float) -> float:
        value = self.take(name, usual)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise AdapterMisconfigured(self.at(name), f"a number from {least:g} to {most:g} is needed here")
        return float(value)

    def margin_s(self) -> float | None:
        """How long before the first send a listing begins; None: at its own beginning."""
        if self.values.get("margin_s", USUAL_MARGIN_S) is None:
            self.take("margin_s")
            return None
        return self.number("margin_s", USUAL_MARGIN_S, least=0, most=LONGEST_MARGIN_S)

    def template(self, name: str) -> str:
        text = self.text(name)
        problem = problem_with(text)
        if problem:
            raise AdapterMisconfigured(self.at(name), problem)
        return text

    def check_nothing_left(self) -> None:
        for name in self.values:
            raise AdapterMisconfigured(self.at(name), "no such field")


def from_environment(env: str, path: str = "/auth/env") -> str:
    """What the variable holds. Raises AdapterMisconfigured where it is not set."""
    value = os.environ.get(env, "")
    if not value:
        raise AdapterMisconfigured(path, f"{env} is not set; set it where web and worker are started")
    return value


def pointer_at(path: str, value: object, *, whole: bool = False) -> str:
    if not is_pointer(value) and not (whole and value == ""):
        example = 'or "" for the whole answer ' if whole else ""
        raise AdapterMisconfigured(path, f'a pointer like "/data/0/id" {example}is needed here')
    return cast("str", value)


def secret_name(fields: Fields) -> str:
    """The environment variable a configuration may name: never one of the ledger's own."""
    name = fields.text("env")
    if not SECRET_NAME.fullmatch(name):
        raise AdapterMisconfigured(
            fields.at("env"), "the name of an environment variable is needed here: PROVIDER_ and capitals"
        )
    return name


def compared_content(fields: Fields) -> Mapping[str, str]:
    """Argument pointer (or `args_hash`) → record pointer; what is not compared is not confirmed."""
    if not fields.values:
        raise AdapterMisconfigured(fields.path, "name at least one argument to compare with the record")
    for name, value in fields.values.items():
        if name != "args_hash":
            pointer_at(fields.at(name), name, whole=True)
        pointer_at(fields.at(name), value)
    return dict(fields.values)
