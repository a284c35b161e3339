"""An agent as a program: it opens one ticket at PROVIDER_URL, once, whichever twin its arguments name.

python tool_program.py blocking|awaiting [operation key]
"""

import asyncio
import os
import sys

import httpx

from ledger.client import AsyncLedger, AsyncOperation, Ledger, LedgerError, Operation

ARGS = {"amount": 500, "to": "Ann"}


def request_of(op: Operation | AsyncOperation) -> httpx.Request:
    body = {**op.args, "metadata": {"correlation_id": op.correlation_id}}
    headers = {"Idempotency-Key": op.idempotency_key}
    return httpx.Request("POST", f"{os.environ['PROVIDER_URL']}/tickets", json=body, headers=headers)


def blocking(key: str) -> None:
    ledger = Ledger.from_env()
    with ledger.operation(key, tool="email.send", args=ARGS) as op, httpx.Client(trust_env=False) as http:
        ticket = http.send(request_of(op)).json()
        op.confirm(result_ref=ticket["id"])
    print(op.result_ref, op.kept)


async def awaiting(key: str) -> None:
    ledger = AsyncLedger.from_env()
    async with ledger.operation(key, tool="email.send", args=ARGS) as op:
        async with httpx.AsyncClient(trust_env=False) as http:
            ticket = (await http.send(request_of(op))).json()
        await op.confirm(result_ref=ticket["id"])
    print(op.result_ref, op.kept)
    await ledger.close()


def main() -> None:
    key = sys.argv[2] if len(sys.argv) > 2 else "ticket:1"
    try:
        if sys.argv[1] == "awaiting":
            asyncio.run(awaiting(key))
        else:
            blocking(key)
    except LedgerError as told:
        print(type(told).__name__)


if __name__ == "__main__":
    main()
