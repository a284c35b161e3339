"""`python -m tests.incidents.unhinted KEY_ID ATTEMPT`: report its success, and be killed after the commit,
where the hint to the senders would be given."""

from __future__ import annotations

import os
import signal
import sys

import django


def main(key_id: str, attempt_id: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from ledger import lifecycle, outbox
    from ledger.lifecycle import OutcomeReport
    from ledger.models import ApiKey
    from ledger.transactions import durable

    outbox._hint = lambda: os.kill(os.getpid(), signal.SIGKILL)
    key = ApiKey.objects.select_related("agent__owner", "agent__tenant").get(key_id=key_id)
    report = OutcomeReport(worker_id="worker-1", outcome="succeeded", result_ref="res_1")
    durable(lambda: lifecycle.record_outcome(key=key, attempt_id=attempt_id, report=report))


if __name__ == "__main__":
    main(*sys.argv[1:])
