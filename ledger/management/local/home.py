"""LEDGER_HOME: the one directory that holds everything a machine keeps for the ledger."""

import base64
import hashlib
import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

CHECKOUT = Path(__file__).resolve().parents[3]
LONGEST_SOCKET_PATH = 100  # bytes; Linux allows 107, macOS 103
OPEN_TO_OTHERS = 0o067
"""Mode bits of a directory that others can read or write; a server's group may walk through."""
POSTGRES_SOCKET = ".s.PGSQL.5432"


@dataclass(frozen=True)
class Home:
    """The places inside one LEDGER_HOME; nothing is created by asking for a path."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "postgres"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def lock(self) -> Path:
        return self.path / "up.lock"

    @property
    def secret_key(self) -> Path:
        return self.path / "secret_key"

    @property
    def sealing_key(self) -> Path:
        return self.path / "sealing_key"

    @property
    def beat_schedule(self) -> Path:
        return self.path / "beat-schedule"

    @property
    def sockets(self) -> Path:
        """Directory of the Unix sockets: inside LEDGER_HOME unless that path is too long for a socket."""
        inside = self.path / "run"
        if len(os.fsencode(inside / "postgres" / POSTGRES_SOCKET)) <= LONGEST_SOCKET_PATH:
            return inside
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"ledger-{os.getuid()}-{digest}"

    @property
    def database_sockets(self) -> Path:
        """A directory of its own: PostgreSQL may run as another user than the rest."""
        return self.sockets / "postgres"

    @property
    def broker_socket(self) -> Path:
        return self.sockets / "broker.sock"

    @property
    def broker_url(self) -> str:
        return f"redis+socket://{self.broker_socket}"

    @property
    def database_url(self) -> str:
        return f"postgresql://ledger@/ledger?host={quote(str(self.database_sockets))}"

    def create(self) -> None:
        """Create the directories, readable by this user alone."""
        for directory in (self.path, self.logs, self.sockets):
            private_directory(directory)


def ledger_home() -> Home:
    """The home named by LEDGER_HOME, else `.ledger/` beside manage.py."""
    named = os.environ.get("LEDGER_HOME")
    return Home(Path(named).expanduser().resolve() if named else CHECKOUT / ".ledger")


def private_directory(path: Path) -> None:
    """Make `path` a directory of mode 0700; PermissionError where it belongs to somebody else."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = path.lstat().st_uid
    if path.is_symlink() or owner != os.geteuid():
        raise PermissionError(f"{path} belongs to user {owner}: remove it or set LEDGER_HOME elsewhere")
    if path.stat().st_mode & OPEN_TO_OTHERS:
        path.chmod(0o700)


def secret_key_of(home: Home) -> str:
    """The signing key of this home, created once with mode 0600; two first starts agree on one."""
    return _kept(home, home.secret_key, secrets.token_urlsafe(64))


def sealing_key_of(home: Home) -> str:
    """What the secrets of destinations are encrypted with (32 bytes, URL-safe base64), created once likewise.

    Whoever loses it must give every destination a new secret, so it belongs into the backup of this home.
    """
    return _kept(home, home.sealing_key, base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())


def _kept(home: Home, path: Path, first: str) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        private_directory(home.path)
        _write_once(path, first)
        return path.read_text()


def _write_once(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(text)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
