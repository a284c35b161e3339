"""Values read from the environment, as settings.py needs them."""

import os
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

DatabaseSettings = dict[str, Any]


def flag(name: str) -> bool:
    return os.environ.get(name, "").lower() in {"1", "true", "yes", "on"}


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list."""
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def database_at(url: str) -> DatabaseSettings:
    """Django's NAME, USER, PASSWORD, HOST, PORT and OPTIONS of a postgres:// URL.

    A Unix socket is written `postgresql:///name?host=/directory` or with the directory quoted as the host.
    ValueError where the scheme or the database's name is wrong.
    """
    parts = urlsplit(url)
    name = unquote(parts.path.lstrip("/"))
    if parts.scheme not in {"postgres", "postgresql"} or not name:
        raise ValueError("DATABASE_URL must look like postgresql://user:password@host:5432/name")
    options = dict(parse_qsl(parts.query))
    return {
        "NAME": name,
        "USER": unquote(parts.username or options.pop("user", "")),
        "PASSWORD": unquote(parts.password or options.pop("password", "")),
        "HOST": options.pop("host", "") or unquote(parts.hostname or ""),
        "PORT": str(parts.port or options.pop("port", "")),
        "OPTIONS": options,
    }
