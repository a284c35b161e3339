"""Every check that needs no crash. Each sends its own messages and says how often they are to be applied."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ledger.client.conformance.bench import Bench, is_2xx
from ledger.client.conformance.findings import Check, Fault
from ledger.client.conformance.messages import Message, spellings
from ledger.rules.webhooks import signature

AT_ONCE = 8
TOO_LATE_S = 400  # the tolerance is 300


def good(bench: Bench) -> Check:
    check = Check("a good message")
    message = bench.signer.settlement()
    if bench.accepted(check, message, "signed as the ledger signs"):
        check.expect(message.webhook_id, 1)
        if bench.effects is not None and not bench.effects.applied().get(message.webhook_id):
            check.notes.append("its effect was not there yet when 2xx came: kept durably, or answered early?")
    return check


def spelled_otherwise(bench: Bench) -> Check:
    check = Check("JSON in other spellings")
    plain = bench.signer.settlement()
    refused: list[str] = []
    taken: list[str] = []
    for what, body in {"canonical": plain.body, **spellings(plain.body)}.items():
        message = replace(plain, body=body)
        (taken if is_2xx(bench.send(check, message)) else refused).append(what)
    if refused:
        fault = Fault.REWRITES_JSON if taken else Fault.REFUSED_GOOD
        check.found(fault, f"refused: {', '.join(refused)}")
    if taken:
        check.expect(plain.webhook_id, 1)
    return check


def two_secrets(bench: Bench) -> Check:
    check = Check("two signatures while a secret is replaced")
    signer = bench.signer
    for what, by in {
        "ours is the second": [signer.stranger, signer.secret],
        "ours is the first": [signer.secret, signer.stranger],
    }.items():
        message = signer.settlement()
        if bench.accepted(check, message, what, by=by):
            check.expect(message.webhook_id, 1)
    return check


def duplicates(bench: Bench) -> Check:
    check = Check("duplicates, and a replay by a person")
    message = bench.signer.settlement()
    taken = [bench.accepted(check, message, f"time {number}") for number in (1, 2, 3)]
    if any([*taken, bench.accepted(check, message, "Ledger-Replay: true", replay=True)]):
        check.expect(message.webhook_id, 1)
    return check


def at_once(bench: Bench) -> Check:
    """Who is busy may say so; the one after them all is accepted."""
    check = Check(f"{AT_ONCE} duplicates at once")
    for _ in range(3):
        message = bench.signer.settlement()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for sending in [pool.submit(bench.send, check, message) for _ in range(AT_ONCE)]:
                sending.result()
        if bench.accepted(check, message, "after the others"):
            check.expect(message.webhook_id, 1)
    return check


def in_order(bench: Bench) -> Check:
    check = Check("settlements in their order")
    operation = bench.signer.operation()
    for number in (1, 2, 3):
        message = bench.signer.settlement(number, operation=operation)
        if bench.accepted(check, message, f"settlement {number}"):
            check.expect(message.webhook_id, 1)
    return check


def late(bench: Bench) -> Check:
    check = Check("an old settlement after a newer one")
    operation = bench.signer.operation()
    newer, older = (bench.signer.settlement(number, operation=operation) for number in (2, 1))
    if bench.accepted(check, newer, "settlement 2"):
        check.expect(newer.webhook_id, 1)
        bench.accepted(check, older, "settlement 1 after 2 (2xx, and nothing to do)")
        check.expect(older.webhook_id, 0, more=Fault.APPLIED_OUTDATED)
    return check


def forged(bench: Bench) -> Check:
    check = Check("forged signatures")
    for what, forge in FORGERIES.items():
        message = bench.signer.settlement()
        headers = bench.signer.headers(message)
        headers["webhook-signature"] = forge(bench, message, headers)
        if not headers["webhook-signature"]:
            del headers["webhook-signature"]
        bench.refused(check, headers, message, what, otherwise=Fault.ACKNOWLEDGED_FORGERY)
    return check


Forgery = Callable[[Bench, Message, dict[str, str]], str]

FORGERIES: dict[str, Forgery] = {
    "another secret": lambda bench, message, _: bench.signer.headers(message, by=[bench.signer.stranger])[
        "webhook-signature"
    ],
    "no signature": lambda *_: "",
    "no base64": lambda *_: "v1,****",
    "the version alone": lambda *_: "v1",
    "half a signature": lambda _bench, _message, headers: headers["webhook-signature"][:-22],
    "a version that is not known": lambda _bench, _message, headers: headers["webhook-signature"].replace(
        "v1,", "v2,"
    ),
    "the signature of another message": lambda bench, *_: bench.signer.headers(bench.signer.settlement())[
        "webhook-signature"
    ],
    "no id and time in it": lambda bench, message, _: signature(bench.signer.secret, "", "", message.body),
}


def altered(bench: Bench) -> Check:
    check = Check("altered bodies and headers")
    message = bench.signer.settlement()
    changes = {
        "another reference": message.body.replace(b"res_msg", b"res_mine"),
        "another settlement": message.body.replace(b'"sequence":1', b'"sequence":9'),
        "cut short": message.body[:-1],
    }
    sent = bench.signer.headers(message)
    for what, body in changes.items():
        bench.refused(check, sent, replace(message, body=body), what, otherwise=Fault.ACKNOWLEDGED_FORGERY)
    same_json = Fault.ACKNOWLEDGED_FORGERY if check.faults else Fault.REWRITES_JSON
    for what, body in {**spellings(message.body), "a space after it": message.body + b" "}.items():
        bench.refused(check, sent, replace(message, body=body), what, otherwise=same_json)
    other_id = replace(bench.signer.settlement(), body=message.body)
    headers = {**sent, "webhook-id": other_id.webhook_id}
    bench.refused(check, headers, other_id, "another id", otherwise=Fault.ACKNOWLEDGED_FORGERY)
    return check


def wrong_times(bench: Bench) -> Check:
    check = Check("times that are long over, or far ahead")
    for what, late_s in {"old": TOO_LATE_S, "a day old": 86_400, "ahead": -TOO_LATE_S}.items():
        message = bench.signer.settlement()
        headers = bench.signer.headers(message, late_s=late_s)
        bench.refused(check, headers, message, what, otherwise=Fault.ACKNOWLEDGED_OLD)
    for what, text in {"no time": "", "a word": "now", "endless": "9" * 400}.items():
        message = bench.signer.settlement()
        signed = signature(bench.signer.secret, message.webhook_id, text, message.body)
        headers = {**bench.signer.headers(message), "webhook-timestamp": text, "webhook-signature": signed}
        bench.refused(check, headers, message, what, otherwise=Fault.ACKNOWLEDGED_OLD)
    return check


def not_known_yet(bench: Bench) -> Check:
    check = Check("types and members that do not exist yet")
    later = bench.signer.settlement().changed(type="ledger.operation.archived.v9")
    bench.accepted(check, later, "an unknown type", otherwise=Fault.REFUSED_UNKNOWN)
    check.expect(later.webhook_id, 0, more=Fault.APPLIED_UNKNOWN)
    more = bench.signer.settlement().changed(
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    )
    if bench.accepted(check, more, "an unknown member", otherwise=Fault.REFUSED_UNKNOWN):
        check.expect(more.webhook_id, 1)
    return check


CHECKS = (
    good, spelled_otherwise, two_secrets, duplicates, at_once, in_order, late, forged, altered, wrong_times,
    not_known_yet,
)  # fmt: skip


def all_checks(bench: Bench) -> Iterator[Check]:
    for check in CHECKS:
        yield check(bench)
