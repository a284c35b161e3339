"""Time is passed in, and identifiers are made in one place."""

import ast
from collections.abc import Iterator

from tests.architecture.sources import Source, outside

HOMES = ("ledger/transactions.py", "ledger/models/ids.py", "ledger/client/clock.py")
SPANS_MAY_BE_MEASURED_IN = (
    "ledger/management/local/",
    "ledger/client/",
    "ledger/dialling",
    "ledger/http",
    "ledger/providers/pace.py",
    "dashboard/management/",
)
CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.time_ns",
          "timezone.now", "uuid.uuid1", "uuid.uuid4", "uuid4"}  # fmt: skip
SPANS = {"time.monotonic", "time.monotonic_ns", "time.perf_counter"}


def test_clocks_and_identifiers_have_one_home() -> None:
    found = [place for source in outside(*HOMES) for place in uses(source, CLOCKS)]
    assert found == []


def test_spans_are_measured_only_by_those_who_wait() -> None:
    allowed = (*HOMES, *SPANS_MAY_BE_MEASURED_IN)
    assert [place for source in outside(*allowed) for place in uses(source, SPANS)] == []


def uses(source: Source, forbidden: set[str]) -> list[str]:
    return [f"{source.at(node)} {name}" for node, name in _dotted_names(source.tree) if name in forbidden]


def _dotted_names(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node, ".".join(ast.unparse(node).split(".")[-2:])
        elif isinstance(node, ast.Name):
            yield node, node.id
