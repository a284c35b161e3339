"""What the pages show: every state, hostile text inert, headers, and few queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.icons import STATE_ICONS, STATE_MEANINGS, STATE_WORDS
from dashboard.templatetags.desk import distance, span, state_badge
from ledger.models import User
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind
from review import decisions
from review.queries import item_page
from review.queries.marked import marked_text
from tests.dashboard import samples
from tests.dashboard.conftest import SignIn
from tests.support import make
from tests.support.cast import Cast

ShowItem = Callable[..., Any]

HOSTILE = {
    "markup": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "template": "{{ page.item_id }}{% csrf_token %}",
    "bidi": "invoice\u202efdp.exe",
    "invisible": "pay\u200bpal",
    "look-alike": "p\u0430ypal",
    "htmx": '" hx-get="/sign-out/" hx-trigger="load',
}


@pytest.fixture
def show_item(monkeypatch: pytest.MonkeyPatch, people: Cast, signed_in: SignIn) -> ShowItem:
    """The page of a sample item with these changes."""

    def show(address: str = f"/review/{samples.ITEM_ID}/", **changes: object) -> Any:
        def sample(_user: User, _item_id: str) -> object:
            return samples.item(**changes)

        monkeypatch.setattr("dashboard.views.item.item_page", sample)
        monkeypatch.setattr("dashboard.views.decide.item_page", sample)
        return signed_in(people.operator).get(address)

    return show


def test_every_state_has_icon_word_and_meaning() -> None:
    assert set(STATE_ICONS) == set(STATE_WORDS) == set(STATE_MEANINGS) == set(State)
    assert len(set(STATE_ICONS.values())) == len(State)
    for state in State:
        assert state_badge(state)["css"] == state.lower()


@pytest.mark.parametrize("state", State)
def test_an_item_in_any_state_has_a_page(show_item: ShowItem, state: State) -> None:
    answer = show_item(state=state)
    assert answer.status_code == 200
    assert STATE_WORDS[state].encode() in answer.content


def test_a_page_of_sparse_facts_stands(show_item: ShowItem) -> None:
    arguments = replace(samples.item().arguments, known=False, text="", segments=(), matches_hash=None)
    answer = show_item(
        arguments=arguments, ballot=None, actions=(), events=(), decisions=(), then_now=(), requested_by=None
    )
    assert b"Only the hash was given" in answer.content
    assert b"this question is closed" in answer.content


def test_a_warning_is_neither_an_all_clear_nor_a_refusal(show_item: ShowItem) -> None:
    body = " ".join(show_item().content.decode().split())
    assert "still granted, 1 warning: the rule changed since<" in body
    refusing = tuple(replace(row, refuses=not row.ok) for row in samples.THEN_NOW)
    body = " ".join(show_item(then_now=refusing, may_send_now=False).content.decode().split())
    assert "refused: The rule changed since." in body


def test_history_says_an_actor_once(show_item: ShowItem) -> None:
    body = show_item().content.decode()
    assert "by system<" in body
    assert "by reconciler<" in body
    assert "by agent refund-bot<" in body


def test_a_closed_item_says_what_became_of_it(people: Cast, signed_in: SignIn) -> None:
    attempt = make.for_a_person(people.key)
    item = make.item_of(attempt)
    decisions.approve(people.approver, item.pk, why="go")
    again = make.send(people.key, make.fresh(attempt))
    make.reported(people.key, again, "succeeded", result_ref="tkt_8")
    client = signed_in(people.operator)
    body = client.get(f"/review/{item.pk}/").content.decode()
    assert '<h1 id="question">Approved by approver → sent as attempt 2 → confirmed tkt_8</h1>' in body
    assert "SUPERSEDED</span>" not in body
    decided = client.get("/review/?tab=decided").content.decode()
    assert "<span>approved by approver</span>" in decided


def test_the_unowned_list_says_whose_its_items_are(people: Cast, signed_in: SignIn) -> None:
    make.for_a_person(people.key)
    body = signed_in(people.operator).get("/review/?tab=unowned").content.decode()
    assert "Only the tenant’s first team owns these" in body
    assert "Review desk (nobody yet)" in body


def test_an_attempt_that_waits_beside_another_was_never_sent(people: Cast, signed_in: SignIn) -> None:
    first = make.dispatched(people.key, make.REFUND)
    make.variant(people.key, first, {**make.ARGS[make.REFUND], "amount": 999})
    assert b"attempt 2, never sent" in signed_in(people.operator).get("/review/").content


def test_hostile_text_is_inert_and_marked(people: Cast, signed_in: SignIn) -> None:
    attempt = make.for_a_person(people.key, args={"title": "x", **HOSTILE}, actor=HOSTILE["markup"])
    body = signed_in(people.operator).get(f"/review/{make.item_of(attempt).pk}/").content.decode()
    assert "<script>alert" not in body
    assert "<img src=x" not in body
    assert "&lt;script&gt;alert(1)" in body
    assert "{{ page.item_id }}" in body
    assert 'hx-trigger="load"' not in body
    for mark in ("U+202E", "U+200B", "U+0430"):
        assert mark in body
    assert "\u202e" not in body
    assert "3 characters that could deceive" in body


def test_hostile_text_is_inert_in_the_queue(people: Cast, signed_in: SignIn) -> None:
    make.for_a_person(people.key, args={"title": HOSTILE["markup"]})
    body = signed_in(people.operator).get("/review/").content.decode()
    assert "<script>alert" not in body
    assert "&lt;script&gt;alert(1)" in body


@pytest.mark.parametrize(
    "query",
    [
        "?tab=nowhere",
        "?state=LOST",
        "?reason=whim",
        "?cursor=zzz",
        "?owner=" + "x" * 600,
        "?tab=a&tab=b",
    ],
)
def test_an_unreadable_filter_is_a_clear_refusal(people: Cast, signed_in: SignIn, query: str) -> None:
    answer = signed_in(people.operator).get(f"/review/{query}")
    assert answer.status_code == 400
    assert b"This filter cannot be read" in answer.content


@pytest.mark.parametrize("tenant", ["x" * 501, "%E2%80%8B", "%C2%85"], ids=["long", "invisible", "control"])
@pytest.mark.parametrize(
    "path",
    ["/review/", "/deliveries/", "/ownership/", "/access/", "/agents/", "/policies/", "/providers/"],
)
def test_so_is_a_tenant_that_cannot_be_one(people: Cast, signed_in: SignIn, path: str, tenant: str) -> None:
    answer = signed_in(people.admin).get(f"{path}?tenant={tenant}")
    assert answer.status_code == 400
    assert b"This filter cannot be read" in answer.content
    assert f'href="{path}"' in answer.content.decode()


@pytest.mark.parametrize(
    "query", ["?tenant=globex", "?tool=%3Cscript%3E", "?owner=stranger", "?q=%25", "?since=x"]
)
def test_a_filter_that_matches_nothing_says_so(people: Cast, signed_in: SignIn, query: str) -> None:
    make.for_a_person(people.key)
    answer = signed_in(people.operator).get(f"/review/{query}")
    assert answer.status_code == 200
    assert b"<script>" not in answer.content


def test_an_empty_queue_is_a_success_with_the_time_of_the_last_sweep(people: Cast, signed_in: SignIn) -> None:
    body = signed_in(people.operator).get("/review/").content.decode()
    assert "Nothing waits here" in body
    assert "No sweep has run yet" in body


def test_a_page_allows_nothing_of_elsewhere_and_nothing_inline(people: Cast, signed_in: SignIn) -> None:
    make.for_a_person(people.key)
    for path in ("/sign-in/", "/review/", "/help/", "/nothing/"):
        answer = signed_in(people.operator).get(path)
        policy = answer["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        for inline in (" style=", " onclick=", "<style", "hx-on", "js:"):
            assert inline not in answer.content.decode(), (path, inline)


def test_fragments_are_never_kept_and_vary_by_who_asks(people: Cast, signed_in: SignIn) -> None:
    item = make.item_of(make.for_a_person(people.key))
    client = signed_in(people.operator)
    for path in (f"/review/{item.pk}/reject/", f"/review/{item.pk}/changed/?seen=0", "/review/"):
        answer = client.get(path, headers={"HX-Request": "true"})
        assert "no-store" in answer["Cache-Control"], path
        assert "HX-Request" in answer["Vary"], path
    part = client.get(f"/review/{item.pk}/reject/", headers={"HX-Request": "true"}).content
    assert b"<html" not in part
    assert b"Reason" in part


def test_the_item_says_when_it_has_changed(people: Cast, signed_in: SignIn) -> None:
    item = make.item_of(make.for_a_person(people.key))
    client, head = signed_in(people.operator), item_page(people.operator, item.pk).head
    asked = f"/review/{item.pk}/changed/?tab=mine&seen={head}"
    assert client.get(asked, headers={"HX-Request": "true"}).status_code == 204
    client.post(f"/review/{item.pk}/claim/")
    answer = client.get(asked, headers={"HX-Request": "true"})
    assert b"Changed while you were reading" in answer.content
    assert f'href="/review/{item.pk}/?tab=mine"'.encode() in answer.content
    assert len(answer.content) < 1024


def test_the_queue_offers_what_is_new_and_sends_no_rows(people: Cast, signed_in: SignIn) -> None:
    make.for_a_person(people.key)
    client = signed_in(people.operator)
    since = client.get("/review/").context["page"].as_of.isoformat()
    asked = {"tab": "all", "since": since}
    assert client.get("/review/strip/", asked, headers={"HX-Request": "true"}).status_code == 204
    make.for_a_person(people.key)
    answer = client.get("/review/strip/", asked, headers={"HX-Request": "true"})
    assert b"1 new, 0 changed" in answer.content
    assert len(answer.content) < 1024
    assert b"<tr" not in answer.content


@pytest.mark.parametrize("since", ["", "yesterday", "2026-01-01", "2026-01-01T00:00:00", "infinity"])
def test_the_strip_wants_a_time(people: Cast, signed_in: SignIn, since: str) -> None:
    assert signed_in(people.operator).get("/review/strip/", {"since": since}).status_code == 400


def test_pages_ask_the_database_little_and_no_more_for_more_rows(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.operator)
    item = make.item_of(make.for_a_person(people.key))
    few = queries(client, "/review/")
    for _ in range(4):
        make.for_a_person(people.key)
    own = 3  # session, person, and whether their navigation has the System page
    assert queries(client, "/review/") == few
    assert few <= 13 + own
    assert queries(client, f"/review/{item.pk}/") <= 18 + own
    assert queries(client, "/review/strip/?since=2026-01-01T00:00:00Z") <= 2 + own
    assert queries(client, f"/review/{item.pk}/changed/?seen=1") <= 1 + own


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


@pytest.mark.parametrize("kind", [DecisionKind.APPROVE, DecisionKind.REJECT, DecisionKind.RELINK_ARGUMENTS])
def test_a_form_stands_open_on_the_page_without_scripts(show_item: ShowItem, kind: DecisionKind) -> None:
    answer = show_item(f"/review/{samples.ITEM_ID}/{kind.value.replace('_', '-')}/")
    body = answer.content.decode()
    assert 'method="post"' in body
    assert 'name="why"' in body
    assert "<html" in body


def test_the_word_retry_stands_on_no_button(show_item: ShowItem) -> None:
    assert b"retry" not in show_item().content.lower()


def test_spans_and_distances_are_readable() -> None:
    assert [span(seconds) for seconds in (0.2, 45, 200, 7_500, 36_000, 1_000_000)] == [
        "0 s", "45 s", "3 min 20 s", "2 h 5 min", "10 h", "11 d",
    ]  # fmt: skip
    assert distance(samples.ago(minutes=3), samples.NOW) == "3 min ago"
    assert distance(samples.NOW, samples.ago(hours=2)) == "in 2 h"


def test_marked_text_gives_nothing_away_unescaped() -> None:
    from dashboard.templatetags.desk import marked

    shown = marked(marked_text("<b>\u202e"))
    assert shown.startswith("&lt;b&gt;<mark")


def test_pages_and_their_files_go_compressed(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.operator)
    for path in ("/review/", "/static/vendor/bootstrap-5.3.9/bootstrap.min.css"):
        answer = client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200
        assert answer["Content-Encoding"] == "gzip"
        answer.close()
