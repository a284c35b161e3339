"""Agents, reconcilers and the ledger's own senders stopped beyond their lease, overtaken, and continued.

    python -m tests.crash.zombie

Exit code 1 where one of them wrote more than evidence, or an effect was not as the table of cases says.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.crash.stack import whole_ledger
from tests.support.provider import ProviderProcess


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    with tempfile.TemporaryDirectory(prefix="zombie-") as directory, whole_ledger() as ledger:
        from tests.crash.zombie_run import Zombies

        # What the reconciler and the sender do here is done one by one, so the scheduler stands still.
        ledger.child("beat").send_signal(signal.SIGSTOP)
        with ProviderProcess(Path(directory)) as provider:
            return Zombies(ledger, provider).show()


if __name__ == "__main__":
    sys.exit(main())
