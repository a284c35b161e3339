"""The cluster itself, also where root has to hand it to another user."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from ledger.management.local import postgres
from ledger.management.local.home import Home
from ledger.management.local.postgres import Cluster, cluster_at, cluster_of
from ledger.management.local.processes import Identity, NobodyCanRun, can_run, ordinary_identities
from ledger.management.local.programs import postgres_programs
from tests.support.processes import wait_until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to find somebody else")


def only_other_users(near: Path) -> list[Identity]:
    return [identity for identity in ordinary_identities(near=near) if identity.is_other]


def runs(cluster: Cluster, log: Path) -> bool:
    with log.open("wb") as output:
        server = cluster.start(output=output)
    try:
        wait_until(lambda: cluster.is_ready, within_s=10, what=log.read_text())
        return True
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(10)


def test_a_half_made_data_directory_is_made_anew(ledger_home_directory: Path) -> None:
    home = Home(ledger_home_directory)
    cluster = cluster_of(home)
    (home.path / "postgres.new").mkdir()
    (home.path / "postgres.new" / "torn").touch()
    cluster.create()
    assert cluster.is_created
    assert not (home.path / "postgres.new").exists()
    assert runs(cluster, home.logs / "postgres.log")


@as_root
def test_root_hands_the_server_to_another_user_where_namespaces_are_refused(
    ledger_home_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(ledger_home_directory)
    home.create()
    home.path.parent.chmod(0o755)
    if not any(
        can_run(other, postgres_programs() / "postgres", writes=[]) for other in only_other_users(home.path)
    ):
        pytest.skip("this checkout is closed to every other user")
    monkeypatch.setattr(postgres, "ordinary_identities", only_other_users)
    cluster = cluster_of(home)
    cluster.create()
    assert cluster.data.stat().st_uid == cluster.identity.uid != 0
    assert runs(cluster, home.logs / "postgres.log")
    home.create()
    assert home.path.stat().st_mode & 0o777 == 0o710

    monkeypatch.undo()
    assert runs(cluster_of(home), home.logs / "postgres.log")
    assert home.database.stat().st_uid == 0


@as_root
def test_where_nobody_can_run_it_the_way_out_is_named(
    ledger_home_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "ordinary_identities", only_other_users)
    home = Home(ledger_home_directory)
    home.create()
    with pytest.raises(NobodyCanRun, match="set LEDGER_HOME to a directory others can reach"):
        cluster_at(home.database, home.database_sockets, way=[])


def test_programs_are_found_without_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = shutil.which("pg_config")
    if installed is None:
        pytest.skip("no PostgreSQL of this machine's own")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert (postgres_programs() / "initdb").is_file()
