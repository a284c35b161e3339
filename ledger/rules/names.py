"""What names, scopes, verbs and addresses look like when a tenant is set up; each check answers a problem."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

KEY_VERBS = ("ingest", "read", "ack", "admin")
SCOPE_KINDS = ("tool", "target")

LONGEST_SLUG = 63
LONGEST_NAME = 100
LONGEST_SCOPE = 200
LONGEST_URL = 2_000
MOST_KEY_DAYS = 3_660

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]", re.ASCII)


def slug_problem(text: str) -> str | None:
    """A slug stands in addresses and in file names."""
    if len(text) > LONGEST_SLUG or not _SLUG.fullmatch(text):
        return f"a slug has 1–{LONGEST_SLUG} lower-case letters, digits and inner hyphens"
    return None


def name_problem(text: str) -> str | None:
    """A name stands on pages and in history: it is seen whole and as it is."""
    if not 1 <= len(text) <= LONGEST_NAME or not text.isprintable() or text != text.strip():
        return f"a name has 1–{LONGEST_NAME} printable characters, no space at its ends"
    return None


def scope_problem(text: str) -> str | None:
    """`tool:GLOB` or `target:GLOB`."""
    kind, colon, glob = text.partition(":")
    if kind not in SCOPE_KINDS or not colon or not glob:
        return 'a scope is "tool:GLOB" or "target:GLOB", for example "tool:email.*"'
    if len(text) > LONGEST_SCOPE or not text.isprintable():
        return f"a scope has at most {LONGEST_SCOPE} printable characters"
    return None


def scopes_problem(scopes: list[str]) -> str | None:
    """A key without a tool scope may do nothing, so making one is a mistake."""
    for scope in scopes:
        problem = scope_problem(scope)
        if problem:
            return f"{scope!r}: {problem}"
    if not any(scope.startswith("tool:") for scope in scopes):
        return 'a key needs at least one "tool:GLOB" scope'
    return None


def verbs_problem(verbs: list[str]) -> str | None:
    """What a key may do at all."""
    unknown = [verb for verb in verbs if verb not in KEY_VERBS]
    if unknown or not verbs:
        return f"verbs are some of {', '.join(KEY_VERBS)}" + (f", not {unknown[0]!r}" if unknown else "")
    return None


def url_problem(url: str, *, https_only: bool) -> str | None:
    """The shape of a destination's address; whether it may be reached is asked again at every send."""
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        return f"an address has at most {LONGEST_URL} ASCII characters without spaces"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "its host or port cannot be read"
    if parts.scheme != "https" and (https_only or parts.scheme != "http"):
        return "it must start with https://"
    return _authority_problem(parts.netloc, port) or ("it carries a #fragment" if parts.fragment else None)


def _authority_problem(netloc: str, port: int | None) -> str | None:
    if "@" in netloc:
        return "a user or password does not belong in it: deliveries are signed instead"
    host = netloc if port is None else netloc.rpartition(":")[0]
    if not _HOST.fullmatch(host) or ".." in host:
        return "it names no host"
    return "port 0 cannot be reached" if port == 0 else None
