"""Every invariant holds on a healthy ledger and finds the fault planted against it."""

from fnmatch import fnmatchcase

import pytest

from ledger.models import Attempt, Tenant
from ledger.queries.invariants import INVARIANTS, OF_THE_SYSTEM, findings, findings_of, history
from ledger.queries.invariants.scope import Scope
from ledger.rules.states import State
from tests.ledger.fsck.conftest import Plant
from tests.ledger.fsck.fault import NOWHERE, Fault
from tests.ledger.fsck.faults import FAULTS
from tests.ledger.fsck.many_states import ManyStates

pytestmark = pytest.mark.django_db

OF_OPERATIONS = [fault for fault in FAULTS if fault.check not in OF_THE_SYSTEM and fault.touched != NOWHERE]


def test_healthy_ledger_in_every_state_is_clean(many_states: ManyStates) -> None:
    assert {State(state) for state in Attempt.objects.values_list("state", flat=True)} == set(State)
    assert list(findings()) == []


def test_every_invariant_has_a_planted_fault() -> None:
    assert {fault.check for fault in FAULTS} == set(INVARIANTS)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_planted_fault_is_found(fault: Fault, plant: Plant, many_states: ManyStates) -> None:
    subject = many_states.subject(fault.subject)
    with plant(fault.sql), fault.code():
        found = list(fault.check(Scope()))
    assert any(fnmatchcase(broken.subject_id, subject) for broken in found), found
    assert list(fault.check(Scope())) == []


@pytest.mark.parametrize("fault", OF_OPERATIONS, ids=str)
def test_fault_of_a_touched_operation_is_found_and_of_no_other(
    fault: Fault, plant: Plant, many_states: ManyStates
) -> None:
    subject = many_states.subject(fault.subject)
    touched = many_states.operation_of(fault.touched or fault.subject)
    elsewhere = many_states.ids["other_operation"]
    with plant(fault.sql):
        found = list(fault.check(Scope(operations=(touched,))))
        assert list(fault.check(Scope(operations=(elsewhere,)))) == []
        assert list(findings_of(fault.check, Scope(operations=()), {})) == []
    assert any(fnmatchcase(broken.subject_id, subject) for broken in found), found


def test_an_event_of_no_operation_spoils_no_other_history(plant: Plant, many_states: ManyStates) -> None:
    with plant("DELETE FROM ledger_operation WHERE id = %(operation_recorded)s"):
        assert list(history.histories_are_whole_and_unedited(Scope())) == []


def test_only_the_tenant_asked_for_is_checked(plant: Plant, many_states: ManyStates) -> None:
    acme, globex = Tenant.objects.get(slug="acme"), Tenant.objects.get(slug="globex")
    with plant("UPDATE ledger_operation SET head_hash = 'x' WHERE operation_key = 'elsewhere'"):
        assert list(findings(acme)) == []
        assert {finding.tenant for finding in findings(globex)} == {"globex"}


def test_what_cannot_be_asked_is_a_finding_and_the_rest_goes_on(
    plant: Plant, many_states: ManyStates
) -> None:
    sql = (
        "UPDATE ledger_event SET body = 'no json' WHERE attempt_id = %(recorded)s; "
        "UPDATE ledger_operation SET settlements_count = 9 WHERE id = %(operation_confirmed)s"
    )
    with plant(sql):
        found = list(findings())
    unasked = [finding for finding in found if finding.detail.startswith("could not be checked")]
    assert "state_is_the_fold_of_its_events" in {finding.invariant for finding in unasked}
    assert "histories_are_whole_and_unedited" in {finding.invariant for finding in found}
    assert "settlements_are_numbered_without_gaps" in {finding.invariant for finding in found}
