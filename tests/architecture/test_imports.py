"""The walls of pyproject.toml, and two that are about what may be imported at all."""

import subprocess
import sys

import pytest

from tests.architecture.sources import Source, below, outside
from tests.checks import ROOT, program

HTTP_CLIENTS = {"httpx", "requests", "urllib3", "urllib.request", "http.client", "aiohttp"}


def test_the_walls_stand() -> None:
    """In a process of its own: the linter's own set-up of logging disables every logger there is already."""
    asked = subprocess.run(
        [program("lint-imports"), "--no-cache"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr


@pytest.mark.parametrize(
    ("package", "libraries"), [("ledger/rules", {"rfc8785"}), ("ledger/client", {"httpx"})]
)
def test_a_pure_package_needs_hardly_anything(package: str, libraries: set[str]) -> None:
    """The client may use the rules, which are as pure as itself."""
    own = package.replace("/", ".")
    allowed = libraries | set(sys.stdlib_module_names)
    strangers = [
        f"{source.name} imports {module}"
        for source in below(f"{package}/")
        for module in source.imported_modules()
        if not module.startswith((own, "ledger.rules")) and module.split(".")[0] not in allowed
    ]
    assert strangers == []


def test_rules_read_neither_clock_nor_randomness() -> None:
    impure = {"time", "random", "secrets", "uuid", "os", "socket", "pathlib", "subprocess", "threading"}
    found = [
        f"{source.name} imports {module}"
        for source in below("ledger/rules/")
        for module in source.imported_modules()
        if module.split(".")[0] in impure
    ]
    assert found == []


def test_only_the_guarded_client_speaks_http() -> None:
    """`up` asks its own web server whether it is ready; nothing else has another way out."""
    homes = ("ledger/http", "ledger/client/", "ledger/management/local/")
    found = [f"{source.name} imports {module}" for source in outside(*homes) for module in clients_of(source)]
    assert found == []


def clients_of(source: Source) -> list[str]:
    return sorted(HTTP_CLIENTS & set(source.imported_modules()))
