"""One verb in a process of its own, to be killed inside it: `leave KEY_ID ATTEMPT` or `approve USER ITEM`."""

import os
import sys

import django


def main(verb: str, who: str, subject: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from ledger import lifecycle
    from ledger.models import ApiKey, Attempt, User
    from ledger.transactions import durable

    if verb == "approve":
        person = User.objects.get(username=who)
        durable(lambda: lifecycle.approve(item_id=subject, by=person, why="checked"))
        return
    key = ApiKey.objects.select_related("agent__owner", "agent__tenant").get(key_id=who)
    args_hash = Attempt.objects.get(pk=subject).args_hash
    durable(
        lambda: lifecycle.give_leave(
            key=key, attempt_id=subject, worker_id="w", leave_id="l", args_hash=args_hash
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
