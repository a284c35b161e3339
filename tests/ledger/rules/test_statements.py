"""When people's words settle something: held against a small model of its own."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.statements import Ended, Said, Says, Verdict, ended_by, people_needed, verdict
from ledger.rules.states import FINAL, State
from ledger.rules.vocabulary import HIGH_RISK, Effect

HAPPENED, DID_NOT = Says.HAPPENED, Says.DID_NOT
statements = st.lists(
    st.builds(Said, st.integers(1, 4), st.sampled_from(Says), st.sampled_from(["", "re_1", "re_2"])),
    min_size=1,
    unique_by=lambda said: said.by,
)


def test_dangerous_effects_want_two_people() -> None:
    assert {effect for effect in Effect if people_needed(effect) == 2} == HIGH_RISK
    assert people_needed(Effect.WRITE, Effect.PAYMENT) == 2


@given(statements)
def test_one_person_settles_nothing_where_two_are_needed(said: list[Said]) -> None:
    found = verdict(said, needed=2)
    newest = said[-1]
    with_me = [
        one
        for one in said
        if one.says == newest.says
        and not (one.reference and newest.reference and one.reference != newest.reference)
    ]
    assert found.settles == (newest.says if len(with_me) >= 2 else None)
    assert found.contradict == (found.settles is None and len(with_me) < len(said))


@given(statements)
def test_where_one_is_enough_the_newest_word_settles(said: list[Said]) -> None:
    assert verdict(said, needed=1).settles == said[-1].says


def test_the_record_is_the_one_that_somebody_named() -> None:
    both = (Said(1, HAPPENED, "re_1"), Said(2, HAPPENED))
    assert verdict(both, needed=2) == Verdict(HAPPENED, "re_1")


def test_two_who_name_different_records_do_not_agree() -> None:
    both = (Said(1, HAPPENED, "re_1"), Said(2, HAPPENED, "re_2"))
    assert verdict(both, needed=2) == Verdict(contradict=True)


def test_what_became_of_it_bears_a_word_out_or_contradicts_it() -> None:
    assert ended_by(HAPPENED, State.OUTCOME_CONFIRMED) is Ended.SETTLED
    assert ended_by(DID_NOT, State.OUTCOME_CONFIRMED) is Ended.CONTRADICTED
    assert ended_by(DID_NOT, State.FAILED) is ended_by(DID_NOT, State.FAILED_RETRYABLE) is Ended.SETTLED
    assert ended_by(HAPPENED, State.FAILED) is Ended.CONTRADICTED
    for state in FINAL - {State.OUTCOME_CONFIRMED, State.FAILED}:
        assert ended_by(HAPPENED, state) is ended_by(DID_NOT, state) is Ended.ANSWERED
