"""`manage.py up`: everything on one machine, until Ctrl-C."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand

from ledger.management.command import Exit, Stopped
from ledger.management.local.leftovers import AlreadyRunning, only_one
from ledger.management.local.postgres import PostgresFailed
from ledger.management.local.processes import NobodyCanRun
from ledger.management.local.programs import ProgramMissing
from ledger.management.local.stack import AddressInUse, Stack, UnsafeDatabase
from ledger.management.local.supervisor import ChildFailed, StopRequested, Supervisor

EXITS: dict[type[Exception], Exit] = {
    UnsafeDatabase: Exit.REFUSED,
    AlreadyRunning: Exit.CONFLICT,
    AddressInUse: Exit.CONFLICT,
    ProgramMissing: Exit.UNAVAILABLE,
    NobodyCanRun: Exit.UNAVAILABLE,
    PostgresFailed: Exit.UNAVAILABLE,
    ChildFailed: Exit.UNAVAILABLE,
    PermissionError: Exit.UNAVAILABLE,
    psycopg.OperationalError: Exit.UNAVAILABLE,
}


class Command(BaseCommand):
    help = "Run the whole ledger on this machine: PostgreSQL, broker, worker, scheduler and web server."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=_port, default=8000, help="port of the web server (default 8000)")
        parser.add_argument(
            "--demo", action="store_true", help="sample tenants, operators and a crashing agent"
        )

        parser.add_argument(
            "--deliverers",
            type=int,
            choices=range(1, 9),
            default=1,
            metavar="N",
            help="workers that tell consumers; with two, nobody waits while one starts again (default 1)",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            self.run(port=options["port"], with_demo=options["demo"], deliverers=options["deliverers"])
        except tuple(EXITS) as error:
            code = next(code for kind, code in EXITS.items() if isinstance(error, kind))
            raise Stopped(code, str(error)) from error

    def run(self, *, port: int, with_demo: bool, deliverers: int) -> None:
        settings.HOME.create()
        with only_one(settings.HOME):
            supervisor = Supervisor(self.tell)
            supervisor.catch_signals()
            stack = Stack(settings.HOME, port, supervisor, host_header=_own_host(), deliverers=deliverers)
            try:
                self.serve(stack, with_demo=with_demo)
            except StopRequested:
                self.tell("Stopping …")
            finally:
                supervisor.stop_all()
            self.tell("Stopped.")

    def serve(self, stack: Stack, *, with_demo: bool) -> None:
        stack.start()
        self.tell(f"The ledger is ready at {stack.address} (Ctrl-C stops it; logs: {stack.home.logs}).")
        if with_demo:
            stack.start_demo()
        stack.supervisor.watch()

    def tell(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _own_host() -> str:
    """A host name that this installation answers to."""
    first = settings.ALLOWED_HOSTS[0]
    return "localhost" if first == "*" else str(first).lstrip(".")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise ArgumentTypeError(f"{text!r} is not a port: 1 to 65535")
    return int(text)
