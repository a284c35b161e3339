"""The provider the other tests lean on: what it says it did is what it did."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.support.provider import ProviderProcess

BODY = {"amount": 500, "metadata": {"correlation_id": "c/1 ü"}}


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[ProviderProcess]:
    with ProviderProcess(tmp_path) as running:
        yield running


def test_an_effect_survives_a_kill(provider: ProviderProcess) -> None:
    provider.send("refunds", BODY, key="k1")
    provider.kill()
    provider.start()
    assert provider.effects("c/1 ü") == 1


def test_a_line_torn_by_a_kill_never_happened(provider: ProviderProcess, tmp_path: Path) -> None:
    provider.send("messages", BODY)
    provider.kill()
    with (tmp_path / "effects.jsonl").open("ab") as file:
        file.write(b'{"resource": "mess')
    provider.start()
    provider.send("messages", BODY)
    assert provider.total_effects() == 2


@pytest.mark.parametrize(("resource", "effects"), [("refunds", 1), ("messages", 2)])
def test_only_some_resources_honour_keys(provider: ProviderProcess, resource: str, effects: int) -> None:
    provider.send(resource, BODY, key="k1")
    provider.send(resource, BODY, key="k1")
    assert provider.effects("c/1 ü") == effects


def test_a_key_with_another_body_is_refused(provider: ProviderProcess) -> None:
    provider.send("refunds", BODY, key="k1")
    with pytest.raises(httpx.HTTPStatusError, match="409"):
        provider.send("refunds", {**BODY, "amount": 501}, key="k1")
    assert provider.total_effects() == 1


@pytest.mark.parametrize(("mode", "effects"), [("accept_then_drop", 1), ("drop_before", 0)])
def test_a_dropped_answer_says_nothing_about_the_effect(
    provider: ProviderProcess, mode: str, effects: int
) -> None:
    provider.set_mode(mode, on="send", times=1)
    with pytest.raises(httpx.RemoteProtocolError):
        provider.send("tickets", BODY)
    provider.wait_for("POST", 1)
    assert provider.effects("c/1 ü") == effects


@pytest.mark.parametrize(("mode", "effects"), [("accept_then_hang", 1), ("hang", 0)])
def test_an_answer_can_hang_before_or_after_its_effect(
    provider: ProviderProcess, mode: str, effects: int
) -> None:
    provider.set_mode(mode, on="send")
    with ThreadPoolExecutor(1) as agent:
        answer = agent.submit(provider.send, "tickets", BODY)
        provider.wait_for_hanging()
        assert provider.effects("c/1 ü") == effects
        assert not answer.done()
        provider.release()
        assert answer.result(10)["id"] == "tkt_000001"
    assert provider.effects("c/1 ü") == 1


def test_a_list_is_read_page_by_page(provider: ProviderProcess) -> None:
    for _ in range(3):
        provider.send("messages", BODY)
    provider.send("messages", {"metadata": {"correlation_id": "another"}})
    seen, target = [], "/messages?correlation_id=c%2F1%20%C3%BC&limit=2"
    while target:
        page = httpx.get(provider.url + target, trust_env=False).json()
        seen += [thing["id"] for thing in page["data"]]
        target = page["next"]
    assert seen == ["msg_000001", "msg_000002", "msg_000003"]


def test_nonsense_is_a_client_error(provider: ProviderProcess) -> None:
    for target in ("/refunds?page=x", "/nowhere", "/refunds/none"):
        assert 400 <= httpx.get(provider.url + target, trust_env=False).status_code < 500
