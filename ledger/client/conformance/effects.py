"""What the consumer did: a line for each applied result, which begins with its webhook id."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx


class EffectsUnreadable(Exception):
    """Where the effects are to be read, nothing could be."""


class Effects(Protocol):
    """Times applied by webhook id, of everything that was ever applied. Raises EffectsUnreadable."""

    def applied(self) -> Mapping[str, int]: ...


@dataclass(frozen=True)
class FileEffects:
    """A file that the consumer appends to; one that is not there yet has no lines."""

    path: Path

    def applied(self) -> Mapping[str, int]:
        try:
            return counted(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as why:
            raise EffectsUnreadable(f"{self.path}: {why}") from None


@dataclass(frozen=True)
class UrlEffects:
    """An address of the consumer that answers 200 and the lines, best read from its database."""

    url: str
    timeout_s: float = 10.0

    def applied(self) -> Mapping[str, int]:
        try:
            answer = httpx.get(self.url, timeout=self.timeout_s, trust_env=False).raise_for_status()
        except httpx.HTTPError as why:
            raise EffectsUnreadable(f"{self.url}: {why}") from None
        return counted(answer.text)


def counted(text: str) -> Mapping[str, int]:
    return Counter(words[0] for line in text.splitlines() if (words := line.split()))
