"""What a consumer of results imports: check who sent it, and apply each result exactly once.

    event = Verifier(secret).verify(headers, body)      # the raw bytes, before any JSON parser saw them
    with connection:                                    # your own transaction
        if Inbox("qmark").take(connection.cursor(), event) is Taken.NEW:
            ...                                         # your work, in the same transaction
    # then answer 2xx

A 2xx says that it was received. Answer it only after the commit: what was not committed is sent again.
"""

from ledger.client.consumer.inbox import Inbox, Taken
from ledger.client.consumer.verify import Event, NotFromTheLedger, Verifier

__all__ = ["Event", "Inbox", "NotFromTheLedger", "Taken", "Verifier"]
