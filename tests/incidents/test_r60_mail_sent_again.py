"""R60: the mail server took the message, the client timed out, and retries delivered up to five copies.

Kind: an effect whose only trace appears late, at a provider that keeps no keys. No look-up that finds
nothing yet may lead to a second mail; the mark it is found by is in the first send. The report asks for a
confirmation once the log shows it, and domain.md agrees; where the log never shows it, a person decides.

The effects are those that the mail server counts, so each test asserts them itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from ledger.models import Attempt, Provider
from ledger.reconciliation import reconcile_once, send_once
from ledger.rules.keys import correlation_id
from ledger.rules.states import State
from ledger.transactions import database_clock
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish
from tests.incidents.scene import Scene
from tests.ledger.providers.mail import ARGS, TOOL, configuration
from tests.support import make
from tests.support.cast import Cast
from tests.support.mailserver import DOMAIN, MailServer

RULE = {
    "effect": "message",
    "provider": "mail",
    "executor": "ledger",
    "settle_s": 180,
    "summary": "Mail {to}",
}
LAG_S = 120


@dataclass
class Post:
    """A tenant whose mail the ledger sends, through a real mail server with a log of what was sent."""

    people: Cast
    server: MailServer

    def posted(self) -> Attempt:
        return make.recorded(self.people.key, TOOL, args=ARGS, operation_key="invoice:7:mail")

    def message_id(self, attempt: Attempt) -> str:
        operation = attempt.operation
        return f"<{correlation_id(str(operation.tenant_id), operation.operation_key)}@{DOMAIN}>"

    def effects(self, attempt: Attempt) -> int:
        return self.server.effects(self.message_id(attempt))

    def asked_after(self, attempt: Attempt, seconds: float) -> Attempt:
        """So much later: one look-up, and one pass of the sender, which must find nothing to send."""
        past = timedelta(seconds=seconds)
        asked = Attempt.objects.filter(pk=attempt.pk)
        make.waited(asked, past, next_check_at=database_clock())
        reconcile_once()
        Attempt.objects.update(send_again_at=None)
        assert send_once().sent == 0, "it was sent again"
        return make.fresh(attempt)


@pytest.fixture
def post(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Post]:
    with MailServer(tmp_path / "mail") as server:
        monkeypatch.setenv("PROVIDER_MAIL_SENT", str(server.sent))
        publish(scene, {TOOL: RULE})
        config = configuration(server, lag_s=LAG_S)
        tenant = scene.people.tenant
        Provider.objects.create(tenant=tenant, name="mail", adapter="smtp", config=config)
        yield Post(scene.people, server)
        nothing_else_went_wrong(scene)


def lost(post: Post) -> Attempt:
    """Sent once, and no answer came."""
    attempt = post.posted()
    assert send_once().sent == 1
    attempt = make.fresh(attempt)
    assert attempt.state == State.UNKNOWN
    return attempt


def test_no_resend_while_the_log_lags_and_confirmed_when_it_shows(post: Post) -> None:
    post.server.set_mode("lagging_then_drop")
    attempt = lost(post)
    assert post.effects(attempt) == 1, "the mark is in the first send"
    for seconds in (0, LAG_S / 2):
        attempt = post.asked_after(attempt, seconds)
        assert (attempt.state, post.effects(attempt)) == (State.UNKNOWN, 1)
    post.server.release()
    attempt = post.asked_after(attempt, LAG_S / 2)
    assert (attempt.state, attempt.confirmed_by) == (State.OUTCOME_CONFIRMED, "lookup")
    assert (attempt.result_ref, post.effects(attempt)) == (post.message_id(attempt), 1)


def test_a_mail_that_never_shows_is_for_a_person(post: Post) -> None:
    post.server.set_mode("drop_before")
    attempt = lost(post)
    for seconds in (0, RULE["settle_s"], RULE["settle_s"]):
        attempt = post.asked_after(attempt, float(str(seconds)))
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "not_idempotent")
    assert post.effects(attempt) == 0


def test_a_log_that_cannot_be_read_changes_nothing(post: Post) -> None:
    post.server.set_mode("drop_before")
    attempt = lost(post)
    post.server.sent.rename(post.server.directory / "unmounted")
    for _ in range(3):
        attempt = post.asked_after(attempt, 600)
    assert (attempt.state, attempt.negatives) == (State.UNKNOWN, 0)


def test_a_log_without_its_canary_is_somebody_elses(post: Post) -> None:
    post.server.set_mode("drop_before")
    attempt = lost(post)
    for mail in (post.server.sent / "new").iterdir():
        mail.unlink()
    for _ in range(3):
        attempt = post.asked_after(attempt, 600)
    assert (attempt.state, attempt.negatives) == (State.UNKNOWN, 0)


def test_two_copies_are_never_one(post: Post) -> None:
    """Somebody beside the ledger sent it too: nobody is told that all is well."""
    post.server.set_mode("accept_then_drop")
    attempt = lost(post)
    (only,) = [path for path in (post.server.sent / "new").iterdir() if b"ilc-" in path.read_bytes()]
    (only.parent / f"{only.name}.again").write_bytes(only.read_bytes())
    attempt = post.asked_after(attempt, 0)
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "several_matches")


def test_a_mail_the_server_took_is_confirmed_by_its_receipt(post: Post) -> None:
    attempt = post.posted()
    send_once()
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.confirmed_by) == (State.OUTCOME_CONFIRMED, "agent")
    assert attempt.result_ref == post.message_id(attempt)
