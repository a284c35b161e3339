"""`manage.py crash_test`: random schedules of real kills, counted at a provider. Needs a checkout."""

import os
from argparse import ArgumentParser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ledger.management.command import Answer, Exit, LedgerCommand, Stopped
from ledger.management.local.home import CHECKOUT

SUITE = "tests.crash.suite.conductor"
PLANTED = "tests.crash.suite.planted"
TALLY = "tests.crash.suite.tally"


class Command(LedgerCommand):
    help = "Kill real processes at random and count the effects, on servers of its own; exit 1 when red."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--schedules", type=int, help="how many (default 2000; of each plant 12)")
        parser.add_argument("--seed", type=int, default=1, help="of the first schedule (default 1)")
        parser.add_argument("--lanes", type=int, default=4, help="how many at once (default 4)")
        parser.add_argument(
            "--replay", type=Path, metavar="FILE", help="run this plan so often, nothing else"
        )
        parser.add_argument(
            "--plant", default="", metavar="BUG", help="plant this bug first: it must be seen"
        )
        parser.add_argument(
            "--planted",
            action="store_true",
            help="test the suite: every plant must be seen, and without one it is green",
        )
        parser.add_argument(
            "--tally",
            type=Path,
            metavar="FILE",
            help="count into this file, beside earlier runs of the same product, and skip their seeds",
        )
        parser.add_argument("--no-keep", action="store_true", help="do not keep failing plans in the corpus")

    def answer(self, **options: Any) -> Answer:
        if os.environ.get("LEDGER_ENV") == "production":
            raise Stopped(Exit.REFUSED, "This kills processes: it is not for production.")
        if not _is_there(SUITE):
            raise Stopped(Exit.REFUSED, "The tests are not installed.", mend="Run it in a checkout.")
        if options["tally"] and (options["planted"] or options["plant"] or options["replay"]):
            raise Stopped(
                Exit.USAGE, "A tally counts random schedules of the product as it is, nothing else."
            )
        tally = import_module(TALLY)
        try:
            found = self._found(tally.at(options["tally"], CHECKOUT) if options["tally"] else None, options)
        except tally.TallyRefused as refused:
            raise Stopped(Exit.CONFLICT, str(refused)) from refused
        return Answer(found.as_text(), found.as_data(), Exit.FAULT_FOUND if found.red else Exit.OK)

    def _found(self, tally: Any, options: dict[str, Any]) -> Any:
        conductor = import_module(SUITE)
        wish = conductor.Wish(
            schedules=options["schedules"] or (12 if options["planted"] else 2000),
            seed=options["seed"],
            lanes=options["lanes"],
            replay=options["replay"],
            planted=options["plant"],
            tally=tally,
            keep=not options["no_keep"],
            show_all=options["verbosity"] > 1,
            say=self.stderr.write,
        )
        return import_module(PLANTED).try_plants(wish) if options["planted"] else conductor.run(wish)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
