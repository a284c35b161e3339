"""LEDGER_HOME: private, at one place, and short enough for sockets."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger.management.local.home import CHECKOUT, Home, ledger_home, private_directory, secret_key_of


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_home_is_beside_manage_py_unless_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEDGER_HOME")
    assert ledger_home().path == CHECKOUT / ".ledger"
    assert (CHECKOUT / "manage.py").is_file()
    monkeypatch.setenv("LEDGER_HOME", str(tmp_path))
    assert ledger_home().path == tmp_path


def test_directories_are_for_this_user_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    assert {mode_of(path) for path in (home.path, home.logs, home.sockets)} == {0o700}


def test_a_long_path_gets_a_short_socket_directory(tmp_path: Path) -> None:
    home = Home(tmp_path / ("x" * 120))
    socket = home.database_sockets / ".s.PGSQL.5432"
    assert len(os.fsencode(socket)) <= 100
    assert home.sockets == Home(home.path).sockets
    assert home.sockets != Home(tmp_path / ("y" * 120)).sockets


def test_a_directory_planted_as_a_link_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    (tmp_path / "run").symlink_to(target)
    with pytest.raises(PermissionError):
        private_directory(tmp_path / "run")


def test_concurrent_first_starts_agree_on_one_secret(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: secret_key_of(home), range(16)))
    assert len(secrets) == 1
    assert len(secrets.pop()) >= 64
    assert mode_of(home.secret_key) == 0o600
    assert [path.name for path in home.path.iterdir()] == ["secret_key"]
