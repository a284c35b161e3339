"""localstripe, a stand-in of Stripe with its API and its effects, as a process of its own.

It keeps no idempotency keys: whoever repeats a request charges twice. It also cannot list refunds and payment
intents from a time on, and lists the oldest first; the ledger must not depend on either.
"""

from __future__ import annotations

import re
import socket
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Self

import httpx

from tests.support.serving import end_with_its_starter, kill_program, start_program

SECRET = "sk_test_localstripe"
GOOD_CARD, DECLINED_CARD = "4242424242424242", "4000000000000341"


class LocalStripe:
    """The handle of one localstripe process, and a client of its API as an agent would be one."""

    url = ""

    def __enter__(self) -> Self:
        """Start, and return once it listens."""
        self._process, said = start_program("tests.support.localstripe", quiet=True)
        found = re.search(r"http://[\d.:]+", said)
        assert found is not None, "localstripe did not start"
        self.url = found[0]
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=30, headers=bearer())
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        kill_program(self._process)

    def post(self, target: str, **fields: Any) -> dict[str, Any]:
        """One request of an agent; nested fields are written as Stripe wants them. Raises on an error."""
        answer = self.client.post(f"/v1/{target}", data=as_form(fields))
        made: dict[str, Any] = answer.raise_for_status().json()
        return made

    def refused(self, target: str, **fields: Any) -> int:
        """The status of a request that does not succeed."""
        return self.client.post(f"/v1/{target}", data=as_form(fields)).status_code

    def forget_everything(self) -> None:
        self.client.delete("/_config/data").raise_for_status()

    def card(self, number: str = GOOD_CARD) -> str:
        """A payment method."""
        card = {"number": number, "exp_month": 12, "exp_year": 2099, "cvc": 123}
        return str(self.post("payment_methods", type="card", card=card)["id"])

    def effects(self, correlation_id: str) -> list[str]:
        """The ids of everything that carries this correlation id, whatever became of it."""
        return self.all_effects()[correlation_id]

    def all_effects(self) -> Mapping[str, list[str]]:
        """The same for every correlation id."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for kind in ("charges", "refunds", "payment_intents"):
            for thing in self.client.get(f"/v1/{kind}", params={"limit": 100_000}).json()["data"]:
                found[thing["metadata"].get("correlation_id", "")].append(thing["id"])
        return found


def bearer() -> dict[str, str]:
    return {"Authorization": f"Bearer {SECRET}"}


def as_form(fields: Mapping[str, Any]) -> dict[str, str]:
    """`{"card": {"cvc": 1}}` as `card[cvc]=1`."""
    flat: dict[str, str] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}[{inner}]": str(text) for inner, text in value.items()}
        else:
            flat[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


def main() -> None:
    """Serve on a free port of this machine until the test that started it is gone."""
    from aiohttp import web
    from localstripe import resources, server

    # It would write everything it holds to one file of the whole machine, at each change.
    resources.Store.dump_to_disk = lambda _store: None
    end_with_its_starter()
    listening = socket.create_server(("127.0.0.1", 0))
    web.run_app(server.app, sock=listening, print=lambda text: print(text, flush=True), access_log=None)


if __name__ == "__main__":
    main()
