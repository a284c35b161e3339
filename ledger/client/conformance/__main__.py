"""`python -m ledger.client.conformance --url URL --secret whsec_… …` prints a table.

Exit 0: no fault; 1: faults; 2: nothing could be checked.
"""

import argparse
import os
import sys
from pathlib import Path

from ledger.client.conformance.effects import Effects, EffectsUnreadable, FileEffects, UrlEffects
from ledger.client.conformance.running import check_consumer
from ledger.client.conformance.wire import ConsumerAway


def main() -> int:
    asked = _arguments().parse_args()
    try:
        report = check_consumer(
            asked.url,
            asked.secret,
            effects=_effects(asked),
            start=asked.start,
            kills=asked.kills,
            timeout_s=asked.timeout_s,
            settle_s=asked.settle_s,
        )
    except (ConsumerAway, EffectsUnreadable, ValueError) as why:
        print(f"Nothing could be checked: {why}", file=sys.stderr)
        return 2
    print(report.table())
    return 1 if report.faults else 0


def _effects(asked: argparse.Namespace) -> Effects | None:
    if asked.effects_url:
        return UrlEffects(asked.effects_url, timeout_s=asked.timeout_s)
    return FileEffects(asked.effects_file) if asked.effects_file else None


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ledger.client.conformance",
        description="Sends a consumer's endpoint made-up results, good and bad, and says what it does wrong. "
        "For tests: never name an endpoint whose effects are real.",
    )
    parser.add_argument("--url", required=True, help="the endpoint")
    known = os.environ.get("WEBHOOK_SECRET")
    meant = "the secret it verifies with, whsec_… ($WEBHOOK_SECRET)"
    parser.add_argument("--secret", default=known, required=known is None, help=meant)
    parser.add_argument(
        "--start", default="", help="a command that runs the consumer; it is killed and restarted"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--effects-url", help="answers a line for each applied result: its webhook id")
    where.add_argument("--effects-file", type=Path, help="has a line for each applied result: its webhook id")
    parser.add_argument("--kills", type=int, default=12, help="kills before an answer (12); 0: none at all")
    parser.add_argument("--timeout-s", type=float, default=30.0, help="for an answer, and for its start (30)")
    parser.add_argument("--settle-s", type=float, default=3.0, help="for effects that appear later (3)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
