"""One writer for each machine: only the lifecycle moves attempts, only deliveries move deliveries."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.sources import Source, below, outside

WRITING_CALLS = {"update", "create", "get_or_create", "update_or_create", "bulk_update", "save"}


@pytest.mark.parametrize(
    ("model", "homes"),
    [
        ("Attempt", ("ledger/lifecycle",)),
        ("Delivery", ("ledger/deliveries", "ledger/outbox")),
    ],
)
def test_state_has_one_writer(model: str, homes: tuple[str, ...]) -> None:
    found = [place for source in outside(*homes) for place in state_writes(source, model)]
    assert found == []


def test_the_check_sees_each_way_of_writing() -> None:
    planted = """
attempt.state = State.UNKNOWN
Attempt.objects.filter(pk=1).update(state="X")
live_attempts().update(state="X", lease_epoch=1)
Attempt.objects.create(state="X")
Attempt(state="X").save()
attempt.save(update_fields=["state"])
setattr(attempt, "state", "X")
Attempt.objects.bulk_update(rows, ["state"])
"""
    assert len(list(_writes_in(ast.parse(planted), "Attempt"))) == 8


def test_the_lifecycle_does_write() -> None:
    """The check would be green on an empty product, too."""
    assert [place for source in below("ledger/lifecycle") for place in state_writes(source, "Attempt")]


def state_writes(source: Source, model: str) -> list[str]:
    return [source.at(node) for node in _writes_in(source.tree, model)]


def _writes_in(tree: ast.AST, model: str) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            yield from (target for target in _targets(node) if _is_state_of(target, model))
        elif isinstance(node, ast.Call) and _call_writes_state(node, model):
            yield node


def _targets(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _is_state_of(target: ast.expr, model: str) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == "state" and _speaks_of(target.value, model)


def _call_writes_state(call: ast.Call, model: str) -> bool:
    names_state = any(word.arg == "state" for word in call.keywords) or any(
        isinstance(part, ast.Constant) and part.value == "state" for part in ast.walk(call)
    )
    return names_state and _writes(call.func, model) and _speaks_of(call, model)


def _writes(function: ast.expr, model: str) -> bool:
    if isinstance(function, ast.Name):
        return function.id in {model, "setattr"}
    return isinstance(function, ast.Attribute) and function.attr in WRITING_CALLS


def _speaks_of(node: ast.AST, model: str) -> bool:
    names = (getattr(part, "id", None) or getattr(part, "attr", None) or "" for part in ast.walk(node))
    return any(model.lower() in name.lower() for name in names)
