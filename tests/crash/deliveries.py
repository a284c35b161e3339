"""Results told to three consumers that are slow, dead and restarted, by workers that are killed at random.

    python -m tests.crash.deliveries [--operations 2000] [--dead-s 60] [--per-s 5] [--seed N]

A quiet run of a quarter as many operations comes first: its delivery ages are what the others are held
against. Exit code 1 where a result was applied twice or never, a tool ran twice, a delivery was left neither
acknowledged nor a dead letter, or (of 500 operations and more) the p95 age of the others was more than twice
the quiet one.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.crash.stack import whole_ledger
from tests.support.provider import ProviderProcess


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--operations", type=int, default=2000)
    parser.add_argument("--dead-s", type=float, default=60.0, help="how long one of the consumers is dead")
    parser.add_argument("--per-s", type=float, default=5.0, help="operations begun in a second")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="deliveries-") as directory,
        ProviderProcess(Path(directory)) as provider,
        whole_ledger("--deliverers", "2") as ledger,
    ):
        from tests.crash.deliveries_run import Deliveries, Size

        size = Size(options.operations, options.dead_s, options.per_s)
        return Deliveries(ledger, provider, Path(directory), size, random.Random(options.seed)).show()


if __name__ == "__main__":
    sys.exit(main())
