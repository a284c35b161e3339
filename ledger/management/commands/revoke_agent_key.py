"""`manage.py revoke_agent_key KEY_ID`: from now on its reports are evidence only, and it gets no leave."""

from argparse import ArgumentParser
from typing import Any

from ledger.access import revoke_key
from ledger.management.command import Answer, Exit, LedgerCommand, Stopped
from ledger.models import ApiKey
from ledger.rules.keys import parse_api_key
from ledger.transactions import durable


class Command(LedgerCommand):
    help = "Revoke a key at once. For 7 days its reports are kept as evidence; they settle nothing."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("key_id", help="the id of the key, the part after ilk_")

    def answer(self, *, key_id: str, **_options: Any) -> Answer:
        parts = parse_api_key(key_id)
        key, revoked_now = durable(lambda: _revoke(parts.key_id if parts else key_id))
        said = "is revoked" if revoked_now else "was revoked already"
        assert key.revoked_at is not None  # noqa: S101 - narrows the type
        return Answer(
            f"Key {key.key_id} of {key.agent.name} {said} since {key.revoked_at:%Y-%m-%d %H:%M:%S} UTC.",
            {
                "key_id": key.key_id,
                "agent": key.agent.name,
                "tenant": key.tenant.slug,
                "revoked_at": key.revoked_at.isoformat(),
                "revoked_now": revoked_now,
            },
        )


def _revoke(key_id: str) -> tuple[ApiKey, bool]:
    """The key, and whether it was this call that revoked it: the first time stands."""
    key = ApiKey.objects.select_related("agent", "tenant").filter(key_id=key_id).first()
    if key is None:
        raise Stopped(Exit.USAGE, "There is no key of this id.", mend="It is the part after ilk_ of the key.")
    return key, revoke_key(key, by=None)
