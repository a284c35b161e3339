"""A policy document as a value: strictly read, then asked for the rule of a tool."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.pointers import below, glob_matches, is_pointer, pointer
from ledger.rules.summary import filled, summary_problem
from ledger.rules.vocabulary import HIGH_RISK, Effect

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S

LEAST_SPAN_S = 0.05
MOST_SPAN_S = 36_525 * DAY_S
MOST_COUNT = 10_000
LONGEST_NAME = 255


class PolicyInvalid(ValueError):
    """The document cannot be published: `path` is a JSON pointer to what is wrong, `problem` says why."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the document'}: {problem}")
        self.path = path
        self.problem = problem


@dataclass(frozen=True)
class Cost:
    """Pointers to the amount reserved from the budget and to its unit (None: the amount has no unit)."""

    amount: str
    unit: str | None = None


@dataclass(frozen=True)
class Rule:
    """What holds for one tool; defaults as in the policy table. Spans are seconds."""

    effect: Effect
    idempotent: bool = False
    key_ttl_s: float = 0.0
    provider: str | None = None
    confirm: str = "receipt"
    executor: str = "agent"
    review: str = "on_unknown"
    approvals: int | None = None
    approval_ttl_s: float | None = None
    dispatch_timeout_s: float = 60.0
    settle_s: float = 30.0
    max_checks: int = 20
    max_attempts: int = 5
    start_within_s: float = 7 * DAY_S
    review_sla_s: float = 4 * HOUR_S
    cost: Cost | None = None
    target: str | None = None
    mask: tuple[str, ...] = ()
    summary: str | None = None

    @property
    def needed_approvals(self) -> int:
        """How many distinct people make an approval."""
        if self.approvals is not None:
            return self.approvals
        return 2 if self.effect in HIGH_RISK else 1

    @property
    def vote_life_s(self) -> float:
        """How long one vote stands."""
        if self.approval_ttl_s is not None:
            return self.approval_ttl_s
        return 4 * HOUR_S if self.needed_approvals == 1 else HOUR_S / 2

    @property
    def has_lookup(self) -> bool:
        """Can the provider be asked what became of a send? Of what only reads, nobody asks."""
        return self.provider is not None and self.effect is not Effect.READ

    @cached_property
    def rule_hash(self) -> str:
        """`v1:sha256:…` of what touches authority and safety; wording and deadlines of service are not in it.

        Defaults are filled in first, so spelling one out changes nothing.
        """
        return content_hash(canonical_bytes(self._hashed()))

    def _hashed(self) -> dict[str, object]:
        return {
            "effect": self.effect.value,
            "idempotent": self.idempotent,
            "key_ttl_s": self.key_ttl_s,
            "provider": self.provider,
            "confirm": self.confirm,
            "executor": self.executor,
            "review": self.review,
            "approvals": self.needed_approvals,
            "approval_ttl_s": self.vote_life_s,
            "cost": None if self.cost is None else {"amount": self.cost.amount, "unit": self.cost.unit},
            "target": self.target,
        }


@dataclass(frozen=True)
class Policy:
    """The rules of one tenant at one version; `default` None refuses every tool not named."""

    default: Rule | None = None
    tools: Mapping[str, Rule] = field(default_factory=dict)

    def rule_for(self, tool: str) -> Rule | None:
        """The rule that holds for this tool: its exact name, else the longest glob, else the default.

        None: the policy refuses the tool. Globs of one length: the one with fewer wildcards, then by
        alphabet, so that the order in which a stored document happens to come back decides nothing.
        """
        if tool in self.tools:
            return self.tools[tool]
        matching = [name for name in self.tools if glob_matches(name, tool)]
        return self.tools[min(matching, key=_specificity)] if matching else self.default

    def sent_by_the_ledger(self) -> frozenset[str]:
        """The names and globs of the rules whose executor is the ledger; `*` where the default is one."""
        named = {name for name, rule in self.tools.items() if rule.executor == "ledger"}
        by_default = self.default is not None and self.default.executor == "ledger"
        return frozenset(named | {"*"} if by_default else named)


def target_of(rule: Rule, args: Mapping[str, object] | None) -> str | None:
    """The text a key's `target:` scopes must cover. None: the rule names no target.

    Empty: it names one, but the arguments do not have it as text or number (or only their hash is known); no
    scope covers that (`authority.covers_target`).
    """
    if rule.target is None:
        return None
    value = pointer(args, rule.target)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return value if isinstance(value, str) else canonical_bytes(value).decode()


def summary_sentence(rule: Rule, args: Mapping[str, object] | None, *, revealed: bool = False) -> str:
    """The rule's human sentence filled from canonical arguments; empty where the rule has none.

    What `mask` hides stays hidden here too, unless a permitted person revealed it.
    """
    return "" if rule.summary is None else filled(rule.summary, args, mask=rule.mask, revealed=revealed)


def parse_policy(document: object) -> Policy:
    """Read a whole policy document. Raises PolicyInvalid at the first thing that is not understood."""
    top = _mapping("", document)
    _refuse_unknown("", top, ("default", "tools"))
    tools = _mapping("/tools", top.get("tools", {}))
    return Policy(
        default=_default_rule(top.get("default", "refuse")),
        tools={name: _rule(below("/tools", _tool_name(name)), rule) for name, rule in tools.items()},
    )


def _specificity(glob: str) -> tuple[int, int, str]:
    return -len(glob), glob.count("*") + glob.count("?"), glob


def _default_rule(value: object) -> Rule | None:
    if value == "refuse":
        return None
    if isinstance(value, str):
        raise PolicyInvalid("/default", 'must be "refuse" or a rule')
    return _rule("/default", value)


def _rule(path: str, value: object) -> Rule:
    given = _mapping(path, value)
    _refuse_unknown(path, given, tuple(_FIELDS))
    if "effect" not in given:
        raise PolicyInvalid(below(path, "effect"), "is required")
    read = {name: _FIELDS[name](below(path, name), found) for name, found in given.items()}
    rule = Rule(**read)
    _check_together(path, rule)
    return rule


def _check_together(path: str, rule: Rule) -> None:
    if rule.key_ttl_s and not rule.idempotent:
        raise PolicyInvalid(below(path, "key_ttl_s"), "needs idempotent: true")
    if rule.executor == "ledger" and rule.provider is None:
        raise PolicyInvalid(below(path, "executor"), "ledger needs a provider to send through")


def _tool_name(name: str) -> str:
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable() or " " in name:
        raise PolicyInvalid(
            "/tools", f"a tool's name or glob has 1–{LONGEST_NAME} printable characters, no space"
        )
    return name


def _mapping(path: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise PolicyInvalid(path, "must be an object")
    return value


def _refuse_unknown(path: str, given: Mapping[str, object], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise PolicyInvalid(below(path, name), f"is not known here; known are {', '.join(known)}")


def _one_of(*words: str) -> Callable[[str, object], str]:
    def read(path: str, value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise PolicyInvalid(path, f"must be one of {', '.join(words)}")
        return value

    return read


def _effect(path: str, value: object) -> Effect:
    return Effect(_one_of(*Effect)(path, value))


def _flag(path: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise PolicyInvalid(path, "must be true or false")
    return value


def _number(path: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PolicyInvalid(path, "must be a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise PolicyInvalid(path, "must be a finite number")
    return value


def _span(path: str, value: object) -> float:
    seconds = _number(path, value)
    if not LEAST_SPAN_S <= seconds <= MOST_SPAN_S:
        raise PolicyInvalid(path, f"must be seconds from {LEAST_SPAN_S} to {MOST_SPAN_S:.0f}")
    return float(seconds)


def _span_or_none(path: str, value: object) -> float:
    return 0.0 if _number(path, value) == 0 else _span(path, value)


def _count(path: str, value: object) -> int:
    number = _number(path, value)
    if number != int(number) or not 1 <= number <= MOST_COUNT:
        raise PolicyInvalid(path, f"must be a whole number from 1 to {MOST_COUNT}")
    return int(number)


def _name(path: str, value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_NAME or not value.isprintable():
        raise PolicyInvalid(path, f"must be a name of 1–{LONGEST_NAME} printable characters")
    return value


def _pointer(path: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_NAME or not is_pointer(value):
        raise PolicyInvalid(path, 'must be a JSON pointer that starts with "/"')
    return value


def _pointers(path: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise PolicyInvalid(path, "must be a list of JSON pointers")
    return tuple(_pointer(below(path, str(index)), found) for index, found in enumerate(value))


def _cost(path: str, value: object) -> Cost:
    if isinstance(value, str):
        return Cost(_pointer(path, value))
    if not isinstance(value, Mapping):
        raise PolicyInvalid(path, "must be a JSON pointer, or an object of amount and unit")
    _refuse_unknown(path, value, ("amount", "unit"))
    read = {name: _pointer(below(path, name), found) for name, found in value.items()}
    if "amount" not in read:
        raise PolicyInvalid(below(path, "amount"), "is required")
    return Cost(**read)


def _summary(path: str, value: object) -> str:
    problem = summary_problem(value)
    if problem:
        raise PolicyInvalid(path, problem)
    return str(value)


_FIELDS: Mapping[str, Callable[[str, object], Any]] = {
    "effect": _effect,
    "idempotent": _flag,
    "key_ttl_s": _span_or_none,
    "provider": _name,
    "confirm": _one_of("receipt", "lookup"),
    "executor": _one_of("agent", "ledger"),
    "review": _one_of("on_unknown", "always"),
    "approvals": _count,
    "approval_ttl_s": _span,
    "dispatch_timeout_s": _span,
    "settle_s": _span,
    "max_checks": _count,
    "max_attempts": _count,
    "start_within_s": _span,
    "review_sla_s": _span,
    "cost": _cost,
    "target": _pointer,
    "mask": _pointers,
    "summary": _summary,
}
