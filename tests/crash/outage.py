"""A provider down for minutes with hundreds of UNKNOWN attempts, with everything as real processes.

    python -m tests.crash.outage [--attempts 500] [--minutes 10] [--absent 20]

Down a third of the time each: it refuses connections, answers 503, hangs. Exit code 1 where an attempt came
to the desk for that, was not settled two minutes after the provider's return, or the provider's limit of
10 requests a second was exceeded.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.crash.stack import whole_ledger
from tests.support.provider import ProviderProcess


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--attempts", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the provider is down")
    parser.add_argument("--absent", type=int, default=20, help="of the attempts, those that never happened")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outage-") as directory, whole_ledger():
        from tests.crash.outage_run import Outage

        with ProviderProcess(Path(directory)) as provider:
            return Outage(provider, options.attempts, options.absent, options.minutes * 60).show()


if __name__ == "__main__":
    sys.exit(main())
