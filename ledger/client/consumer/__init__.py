"""What a consumer of results imports: check who sent it, and apply each result exactly once.

    receiver = Receiver(Verifier(secret), transaction=books, inbox=Inbox("qmark"), work=apply)
    answer = receiver.receive(headers, body)            # the raw bytes, before any JSON parser saw them

or its parts:

    event = Verifier(secret).verify(headers, body)
    with connection:                                    # your own transaction
        if Inbox("qmark").take(connection.cursor(), event) is Taken.NEW:
            ...                                         # your work, in the same transaction
    # then answer 2xx

A 2xx says that it was received. Answer it only after the commit: what was not committed is sent again.
"""

from ledger.client.consumer.event import Event
from ledger.client.consumer.inbox import Inbox, Taken
from ledger.client.consumer.receiver import Answer, Receiver
from ledger.client.consumer.transaction import NotInTransaction
from ledger.client.consumer.verify import NotFromTheLedger, Verifier

__all__ = [
    "Answer",
    "Event",
    "Inbox",
    "NotFromTheLedger",
    "NotInTransaction",
    "Receiver",
    "Taken",
    "Verifier",
]
