"""Charges and refunds at localstripe by an agent that keeps dying, while the database stops again and again.

    python -m tests.crash.payments [--operations 200] [--seed N] [--stops 3]

localstripe keeps no idempotency keys: whoever repeats blindly pays twice, which is shown first. Exit code 1
where any operation ever had more than one effect, or not all have exactly one in the end.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.crash.stack import whole_ledger
from tests.support.localstripe import SECRET, LocalStripe


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--operations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--stops", type=int, default=3, help="how often PostgreSQL is stopped at once")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="payments-") as directory,
        LocalStripe() as stripe,
        whole_ledger(PROVIDER_STRIPE_KEY=SECRET) as ledger,
    ):
        from tests.crash.payments_run import Payments

        run = Payments(ledger, stripe, Path(directory), options.operations, options.seed, options.stops)
        return run.show()


if __name__ == "__main__":
    sys.exit(main())
