"""The contract of POST /intents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ledger.models import Attempt, Operation, Refusal
from ledger.transactions import database_clock
from tests.ledger.ingest.cast import POLICY, Cast, new_cast
from tests.ledger.ingest.steps import ARGS, STANDING, hash_of, new_attempt, post_intent, sent_attempt
from tests.support.api import Api, slug_of


def test_a_new_intent_is_stored_before_anything_is_sent(api: Api) -> None:
    answer = post_intent(api)
    assert answer.status_code == 201
    assert "Idempotent-Replayed" not in answer.headers
    body = answer.json()
    assert set(body) == STANDING
    assert (body["state"], body["outcome"], body["directive"]) == ("INTENT_RECORDED", "open", "dispatch")
    assert (body["attempt"], body["policy_version"], body["args_hash"]) == (1, 1, hash_of(ARGS))
    assert bytes(Attempt.objects.get(pk=body["attempt_id"]).args_bytes or b"") == (
        b'{"amount":1.5,"to":"a@example.org"}'
    )


def test_the_same_intent_again_gets_the_same_answer(api: Api) -> None:
    first, again = post_intent(api), post_intent(api, args={"amount": 1.50, "to": "a@example.org"})
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert again.json() == first.json()


def test_a_tool_under_review_waits_for_a_person_each_time_it_is_posted(api: Api) -> None:
    first, again = post_intent(api, tool="pay.held"), post_intent(api, tool="pay.held")
    assert (first.status_code, again.status_code) == (202, 202)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    body = first.json()
    assert (body["state"], body["directive"], body["reason"]) == (
        "MANUAL_REVIEW", "hold", "approval_required",
    )  # fmt: skip
    assert "/review/rev_" in body["review_url"]


@pytest.mark.parametrize("changed", [{"args": {"to": "b"}}, {"tool": "email.other"}])
def test_other_content_under_the_key_is_held_once(api: Api, changed: dict[str, object]) -> None:
    first = new_attempt(api)
    answers = [post_intent(api, **changed), post_intent(api, **changed)]
    for answer in answers:
        assert (answer.status_code, slug_of(answer)) == (422, "idempotency-key-reused")
        assert answer.json()["operation_id"] == first["operation_id"]
        assert answer.json()["attempt_id"] != first["attempt_id"]
        assert answer.json()["directive"] == "hold"
    held = Attempt.objects.filter(operation=first["operation_id"], reason="arguments_changed")
    assert held.get().pk == answers[0].json()["attempt_id"]


def test_a_hash_may_stand_for_the_arguments(api: Api) -> None:
    hashed = post_intent(api, args=None, args_hash=hash_of(ARGS))
    assert hashed.status_code == 201
    assert post_intent(api).status_code == 200


def test_a_hash_beside_the_arguments_must_be_theirs(api: Api) -> None:
    assert post_intent(api, args_hash=hash_of(ARGS)).status_code == 201
    wrong = post_intent(api, args_hash=hash_of({}))
    assert (wrong.status_code, slug_of(wrong)) == (422, "args-hash-mismatch")


def test_arguments_or_their_hash_are_required(api: Api) -> None:
    answer = post_intent(api, args=None)
    assert (answer.status_code, slug_of(answer)) == (422, "args-required")


def test_what_the_ledger_sends_needs_more_than_a_hash(api: Api, cast: Cast) -> None:
    answer = post_intent(api, tool="own.send", args=None, args_hash=hash_of(ARGS))
    assert (answer.status_code, slug_of(answer)) == (422, "args-required")
    assert not Operation.objects.filter(tenant=cast.tenant).exists()
    assert post_intent(api, tool="own.send").status_code == 201
    again = post_intent(api, tool="own.send", args=None, args_hash=hash_of(ARGS))
    assert (again.status_code, again.json()["directive"]) == (200, "in_flight"), "it is known already"


def test_a_key_of_255_characters_is_one_and_kept_exactly(api: Api) -> None:
    key = "é" * 254 + "\U0001f600"
    made = new_attempt(api, operation_key=key)
    assert Operation.objects.get(pk=made["operation_id"]).operation_key == key
    assert post_intent(api, operation_key="e\u0301" * 100).status_code == 201


REFUSED = {
    "policy-refused": {"tool": "secret.drop"},
    "target-refused": {"tool": "pay.card", "args": {"account": "other-1"}},
}


@pytest.mark.parametrize(("reason", "changed"), REFUSED.items(), ids=REFUSED)
def test_a_refusal_is_a_row_and_no_operation(
    api: Api, cast: Cast, reason: str, changed: dict[str, object]
) -> None:
    answer = post_intent(api, **changed)
    assert (answer.status_code, slug_of(answer)) == (403, reason)
    assert answer.json()["reasons"] == [reason]
    assert answer.json()["operation_id"] is None
    assert not Operation.objects.filter(tenant=cast.tenant).exists()
    assert Refusal.objects.get(tenant=cast.tenant).reason == reason


def test_a_key_without_the_tool_is_refused(api: Api, cast: Cast) -> None:
    with api.as_key(cast.key(scopes=["tool:note.*"])[0]) as narrow:
        answer = post_intent(narrow)
    assert (answer.status_code, slug_of(answer)) == (403, "scope-refused")
    assert Refusal.objects.get(tenant=cast.tenant).reason == "scope-refused"


def test_a_suspended_tenant_records_nothing(api: Api, cast: Cast) -> None:
    cast.tenant.suspended_at = database_clock()
    cast.tenant.save()
    answer = post_intent(api)
    assert (answer.status_code, slug_of(answer)) == (403, "tenant-suspended")
    assert not Operation.objects.filter(tenant=cast.tenant).exists()


@pytest.mark.parametrize("named", ["reviewer.username", "reviewer.email", "owner.username", "owner.email"])
def test_the_person_who_asked_is_found_by_name_or_address(api: Api, cast: Cast, named: str) -> None:
    who, field = named.split(".")
    person = getattr(cast, who)
    made = new_attempt(api, requested_by=getattr(person, field))
    assert Attempt.objects.get(pk=made["attempt_id"]).requested_by == person


def test_people_of_other_tenants_are_unknown(api: Api, cast: Cast) -> None:
    outsider, missing = new_cast().reviewer.username, "nobody-at-all"
    answers = [post_intent(api, requested_by=named) for named in (outsider, missing)]
    assert {(answer.status_code, slug_of(answer)) for answer in answers} == {(422, "unknown-person")}
    details = {answer.json()["detail"] for answer in answers}
    assert len(details) == 1
    assert not Operation.objects.filter(tenant=cast.tenant).exists()


def test_a_closed_account_asks_for_nothing(api: Api, cast: Cast) -> None:
    cast.reviewer.is_active = False
    cast.reviewer.save()
    assert slug_of(post_intent(api, requested_by=cast.reviewer.username)) == "unknown-person"


def test_everything_named_is_kept(api: Api) -> None:
    expires_at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    made = new_attempt(
        api, run="run 7", step="s", task_id="t", actor="a model", retry_of="old", worker_id="w",
        expires_at=expires_at.isoformat(),
    )  # fmt: skip
    attempt = Attempt.objects.select_related("operation__run").get(pk=made["attempt_id"])
    operation = attempt.operation
    assert (attempt.actor, attempt.expires_at) == ("a model", expires_at)
    assert operation.run is not None
    assert (operation.run.name, operation.step, operation.task_id, operation.retry_of) == (
        "run 7", "s", "t", "old",
    )  # fmt: skip


def test_a_confirmed_operation_answers_done(api: Api) -> None:
    attempt = sent_attempt(api)
    api.post(
        f"/attempts/{attempt['attempt_id']}/outcome", worker_id="w1", outcome="succeeded", result_ref="r-1"
    )
    again = post_intent(api)
    assert (again.status_code, again.json()["directive"], again.json()["result_ref"]) == (200, "done", "r-1")


def test_a_published_policy_speaks_for_the_next_intent(api: Api, cast: Cast) -> None:
    cast.publish({**POLICY, "tools": {"email.*": {"effect": "message", "review": "always"}}})
    answer = post_intent(api)
    assert (answer.status_code, answer.json()["policy_version"]) == (202, 2)
