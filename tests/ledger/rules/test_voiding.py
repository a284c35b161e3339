"""What ends a yes: the first change in a fixed order, and nothing but a change."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.voiding import ROWS, VoidCause, VoteNow, why_void

STANDS = VoteNow(
    digest_equal=True,
    rule_stands=True,
    tenant_active=True,
    covered=True,
    cancelled=False,
    happened=False,
    permitted=True,
    in_conflict=False,
)
CHANGES = (
    ("digest_equal", VoidCause.ARGUMENTS),
    ("rule_stands", VoidCause.RULE),
    ("tenant_active", VoidCause.TENANT),
    ("covered", VoidCause.SCOPE),
    ("cancelled", VoidCause.CANCELLED),
    ("happened", VoidCause.HAPPENED),
    ("permitted", VoidCause.RIGHT),
    ("in_conflict", VoidCause.CONFLICT),
)


def changed(*names: str) -> VoteNow:
    return replace(STANDS, **{name: not getattr(STANDS, name) for name in names})


def test_what_did_not_change_stands() -> None:
    assert why_void(STANDS) is None


def test_every_cause_has_its_row_in_the_order_of_the_words() -> None:
    assert [cause for cause, _ in ROWS] == list(VoidCause)


@given(st.sets(st.sampled_from([name for name, _ in CHANGES]), min_size=1))
def test_the_first_change_in_order_speaks(names: set[str]) -> None:
    expected = next(cause for name, cause in CHANGES if name in names)
    assert why_void(changed(*names)) is expected
