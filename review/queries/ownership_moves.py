"""Which open items would change owner if rules of ownership were asked about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import BooleanField, ExpressionWrapper

from ledger.models import ReviewGroup, ReviewItem, User
from ledger.owners import first_team_of
from ledger.queries.arguments import sentence_of
from ledger.rules.ownership import OwnershipRule, Question, first_match, owner_by
from ledger.rules.policy import Rule
from ledger.rules.vocabulary import Effect, ReviewReason
from review.owners import able_among, rules_in_force
from review.queries.lists import open_items, unowned
from review.queries.urgency import PolicyAndTool, rules_of, rules_of_pairs

MOST_LISTED = 100


@dataclass(frozen=True)
class Move:
    """One open item that would change owner. `was` is the team and the person it has; `rule` the place of the
    rule that says so, from 0, None where none does. `unowned`: nobody in particular owns it now."""

    item_id: str
    was: tuple[int, int | None]
    to: tuple[int, int | None]
    rule: int | None
    unowned: bool


@dataclass(frozen=True)
class MoveCount:
    """How many items would move from one owner to another; of them, how many nobody owns now."""

    before: str
    after: str
    every: int
    unowned: int


@dataclass(frozen=True)
class MoveRow:
    """One of these items in a line."""

    item_id: str
    sentence: str
    before: str
    after: str
    rule: int | None  # from 1
    unowned: bool


@dataclass(frozen=True)
class DryRun:
    """What rules would do to open items. `matched`: how many open items each rule decides about;
    `listed`: the first 100 of those that would move."""

    open: int
    matched: tuple[int, ...]
    unmatched: int
    counts: tuple[MoveCount, ...]
    listed: tuple[MoveRow, ...]
    every: int
    unowned: int


@dataclass(frozen=True)
class _Asked:
    """One open item as rules are asked about it."""

    item_id: str
    question: Question
    has: tuple[int, int | None]
    unowned: bool


def moves_by_rules(tenant_id: int) -> tuple[Move, ...]:
    """Of the rules in force, the oldest item first."""
    return _moves(tenant_id, rules_in_force(tenant_id), _asked(tenant_id))


def dry_run(tenant_id: int, rules: Sequence[OwnershipRule]) -> DryRun:
    """What these rules would do, without doing it; queries do not grow with items."""
    asked = _asked(tenant_id)
    moves = _moves(tenant_id, rules, asked)
    matched = Counter(first_match(rules, one.question) for one in asked)
    return DryRun(
        open=len(asked),
        matched=tuple(matched[place] for place in range(len(rules))),
        unmatched=matched[None],
        counts=_counts(moves, _names(tenant_id, moves)),
        listed=rows_of_moves(tenant_id, moves[:MOST_LISTED]),
        every=len(moves),
        unowned=sum(move.unowned for move in moves),
    )


def _asked(tenant_id: int) -> list[_Asked]:
    items = open_items([tenant_id])
    policies = rules_of(items).rules
    columns = ("pk", "attempt__tool", "attempt__policy_id", "reason", "owner_group_id", "owner_id")
    ownerless = ExpressionWrapper(unowned(), output_field=BooleanField())
    rows = items.annotate(ownerless=ownerless).order_by("opened_at", "pk")
    return [
        _Asked(
            pk, Question(tool, ReviewReason(reason), _effect(policies, (policy, tool))), (team, person), free
        )
        for pk, tool, policy, reason, team, person, free in rows.values_list(*columns, "ownerless")
    ]


def _effect(policies: Mapping[PolicyAndTool, Rule], pair: PolicyAndTool) -> Effect:
    rule = policies.get(pair)
    return rule.effect if rule else Effect.WRITE


def _moves(tenant_id: int, rules: Sequence[OwnershipRule], asked: Sequence[_Asked]) -> tuple[Move, ...]:
    able, first_team = able_among(tenant_id, rules), first_team_of(tenant_id)
    found = []
    for one in asked:
        owned = owner_by(rules, one.question, able=able, first_team=first_team)
        to = (owned.team, owned.person)
        if to != one.has:
            found.append(Move(one.item_id, one.has, to, owned.rule, one.unowned))
    return tuple(found)


def _names(tenant_id: int, moves: Sequence[Move]) -> Mapping[tuple[int, int | None], str]:
    """What each owner of these moves is called: the person, else `#team`."""
    owners = {owner for move in moves for owner in (move.was, move.to)}
    teams = dict(ReviewGroup.objects.filter(tenant_id=tenant_id).values_list("pk", "name"))
    people = User.objects.in_bulk([person for _, person in owners if person is not None])
    return {
        (team, person): f"#{teams[team]}" if person is None else people[person].get_username()
        for team, person in owners
    }


def _counts(moves: Sequence[Move], names: Mapping[tuple[int, int | None], str]) -> tuple[MoveCount, ...]:
    every = Counter((names[move.was], names[move.to]) for move in moves)
    unowned = Counter((names[move.was], names[move.to]) for move in moves if move.unowned)
    return tuple(MoveCount(*pair, number, unowned[pair]) for pair, number in sorted(every.items()))


def rows_of_moves(tenant_id: int, moves: Sequence[Move]) -> tuple[MoveRow, ...]:
    """In words; queries do not grow with moves."""
    names = _names(tenant_id, moves)
    return tuple(
        MoveRow(
            item_id=move.item_id,
            sentence=sentence,
            before=names[move.was],
            after=names[move.to],
            rule=None if move.rule is None else move.rule + 1,
            unowned=move.unowned,
        )
        for move, sentence in zip(moves, _sentences([move.item_id for move in moves]), strict=True)
    )


def _sentences(item_ids: Sequence[str]) -> list[str]:
    """What each item is about, in words of its rule's template, in this order."""
    items = ReviewItem.objects.select_related("attempt").in_bulk(item_ids)
    attempts = [items[item_id].attempt for item_id in item_ids]
    rules = rules_of_pairs({(attempt.policy_id, attempt.tool) for attempt in attempts}).rules
    return [sentence_of(attempt, rules.get((attempt.policy_id, attempt.tool))) for attempt in attempts]
