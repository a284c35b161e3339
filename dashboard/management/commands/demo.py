"""`manage.py demo`: fill a running ledger with sample people and an agent that is killed on purpose."""

from __future__ import annotations

import os
import signal
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connection

from dashboard.management.demo.cast import PEOPLE, TENANTS
from dashboard.management.demo.conductor import Conductor
from dashboard.management.demo.desk import Desk
from dashboard.management.demo.programs import Agent, Bank, ProgramFailed, start_bank, start_shop
from dashboard.management.demo.seed import ensure_shop, seed
from dashboard.management.demo.state import DemoRunsAlready, Secrets, Work, only_demo
from ledger.management.command import Exit, Stopped

REMIND_EVERY = 20
"""Lines of the log after which it is told again where the passwords are: they have scrolled off by then."""

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

FIRST_STEPS = """
What to try first
  1. Sign in as ada, open a mail that was “not found”, if one waits, and approve it: within seconds the agent
     sends it.
  2. Approve a deployment as ada, then as bruno: it needs two people.
  3. Open Dead letters, read why the shop was not told, and redeliver: it answers the same until its order is
     counted, and no tool runs again.
  4. Open “Same key, other arguments”: both refunds side by side, and why the second cannot be approved yet.
"""


class StopRequested(Exception):
    """Ctrl-C or SIGTERM arrived."""


class Command(BaseCommand):
    help = "Sample tenants, people and policies, a provider, and an agent that is killed on purpose."
    requires_system_checks = []
    _logged = 0

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=int, help="where the ledger listens on this machine (default: LEDGER_URL, or 8000)"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        if not settings.DEVELOPMENT:
            raise Stopped(Exit.REFUSED, "Sample people with printed passwords do not belong in production.")
        try:
            with only_demo(settings.HOME.path / "demo"):
                _catch_signals()
                self._run(_address(options["port"]))
        except StopRequested:
            self._tell(f"demo: stopped. Who may sign in when it runs again:\n\n{_people(_known())}\n")
        except DemoRunsAlready as already:
            raise Stopped(Exit.CONFLICT, str(already)) from already
        except ProgramFailed as failed:
            raise Stopped(Exit.UNAVAILABLE, f"The demo's provider does not start: {failed}.") from failed

    def _run(self, address: str) -> None:
        home = settings.HOME.path
        known, work = _known(), Work.at(home / "demo" / "work.json")
        bank = start_bank(home / "demo" / "provider", wanted_port=known.provider_port)
        shop = start_shop(home / "demo" / "shop", wanted_port=known.shop_port)
        try:
            known.provider_port, known.shop_port = bank.port, shop.port
            known.save()
            if seed(known, bank.url) or not work.series:
                work.begin_series()
            shop.use(ensure_shop(known, shop.url))
            connection.close()
            self._tell(_introduction(address, bank.url, known))
            self._conduct(address, bank, known, work)
        finally:
            shop.kill()
            bank.kill()

    def _conduct(self, address: str, bank: Bank, known: Secrets, work: Work) -> None:
        agents = {
            tenant.slug: Agent(
                tenant.agent,
                ledger_url=address,
                api_key=known.api_keys[tenant.slug],
                provider_url=bank.url,
            )
            for tenant in TENANTS
        }
        conductor = Conductor(agents, bank, work, self._log, Desk(self._log).look)
        try:
            conductor.run()
        finally:
            conductor.stop()

    def _log(self, line: str) -> None:
        self._tell(line)
        self._logged += 1
        if self._logged % REMIND_EVERY == 0:
            self._tell(f"(who may sign in, with passwords: {_known().path})")

    def _tell(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _address(port: int | None) -> str:
    if port is not None:
        return f"http://127.0.0.1:{port}"
    return os.environ.get("LEDGER_URL") or "http://127.0.0.1:8000"


def _introduction(address: str, provider_url: str, known: Secrets) -> str:
    counted = f"What the provider itself says it did: {provider_url}/effects, /refunds, /messages, /tickets"
    return f"\nSign in at {address}/sign-in/\n\n{_people(known)}\n{FIRST_STEPS}{counted}\n"


def _known() -> Secrets:
    return Secrets.at(settings.HOME.path / "demo.json")


def _people(known: Secrets) -> str:
    rows = [("user", "password", "may")]
    rows += [(person.username, known.password_of(person.username), person.may) for person in PEOPLE]
    return "\n".join(f"  {user:<8}{password:<17}{may}" for user, password, may in rows)


def _catch_signals() -> None:
    """The first signal stops the demo; more of them do not disturb the clearing up."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        raise StopRequested

    for number in STOPPING:
        signal.signal(number, stop)
