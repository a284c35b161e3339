"""Hostile HTTP, some of it such as no client library would send: a clear problem, never a 500."""

from __future__ import annotations

import pytest

from tests.ledger.ingest.cast import Cast, stored
from tests.support.api import PREFIX, Api, RawAnswer, WebServer, slug_of

BODY = b'{"operation_key": "k", "tool": "email.send", "args": {}}'


def request(
    target: bytes,
    *,
    key: str,
    method: bytes = b"GET",
    host: bytes = b"127.0.0.1",
    headers: bytes = b"",
    body: bytes = b"",
    length: int | bytes | None = None,
) -> bytes:
    """The bytes of one request; `length` stands in for the true Content-Length."""
    declared = b"%d" % (len(body) if length is None else length) if not isinstance(length, bytes) else length
    return (
        method + b" " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n"
        b"Authorization: Bearer " + key.encode() + b"\r\nContent-Type: application/json\r\n"
        b"Content-Length: " + declared + b"\r\n" + headers + b"\r\n" + body
    )  # fmt: skip


OPERATIONS = PREFIX.encode() + b"/operations"

ADDRESSES = {
    "NUL in the path": (OPERATIONS + b"/%00", 400, "bad-request"),
    "NUL amid an id": (OPERATIONS + b"/op_%000", 400, "bad-request"),
    "CR LF in the path": (OPERATIONS + b"/a%0d%0aSet-Cookie:x=1", 400, "bad-request"),
    "C1 control in the path": (OPERATIONS + b"/%c2%85", 400, "bad-request"),
    "broken UTF-8 in the path": (OPERATIONS + b"/%ff%fe", 404, "not-found"),
    "overlong UTF-8 in the path": (OPERATIONS + b"/%c0%af", 404, "not-found"),
    "NUL in the query": (OPERATIONS + b"?tool=a%00b", 400, "bad-request"),
    "CR LF in the query": (OPERATIONS + b"?tool=a%0d%0ab", 400, "bad-request"),
    "NUL in a parameter's name": (OPERATIONS + b"?to%00ol=a", 400, "bad-request"),
    "broken UTF-8 in the query": (OPERATIONS + b"?tool=%ff", 400, "bad-request"),
    "a parameter twice": (OPERATIONS + b"?tool=a&tool=b", 400, "bad-request"),
    "a parameter twice, escaped": (OPERATIONS + b"?tool=a&%74ool=b", 400, "bad-request"),
    "a parameter twice, equal": (OPERATIONS + b"?limit=5&limit=5", 400, "bad-request"),
    "a thousand parameters": (
        OPERATIONS + b"?" + b"&".join(b"p%d=1" % n for n in range(1000)),
        400,
        "bad-request",
    ),
    "16 kB of query": (OPERATIONS + b"?tool=" + b"a" * 16_384, 414, "address-too-long"),
    "16 kB of path": (OPERATIONS + b"/" + b"a" * 16_384, 414, "address-too-long"),
    "an unknown parameter": (OPERATIONS + b"?status=open", 422, "invalid-request"),
    "an unknown state": (OPERATIONS + b"?state=ANY", 422, "invalid-request"),
    "an unknown outcome": (OPERATIONS + b"?outcome=", 422, "invalid-request"),
    "limit of nothing": (OPERATIONS + b"?limit=0", 422, "invalid-request"),
    "limit beyond all": (OPERATIONS + b"?limit=201", 422, "invalid-request"),
    "limit no number": (OPERATIONS + b"?limit=ten", 422, "invalid-request"),
    "limit infinity": (OPERATIONS + b"?limit=Infinity", 422, "invalid-request"),
    "limit of 5000 digits": (OPERATIONS + b"?limit=" + b"9" * 5_000, 422, "invalid-request"),
    "a cursor of one's own": (OPERATIONS + b"?cursor=abc", 422, "invalid-cursor"),
    "a cursor that looks signed": (OPERATIONS + b"?cursor=WzFd:1abcde:xyz", 422, "invalid-cursor"),
    "an id without a prefix": (OPERATIONS + b"/12345", 404, "not-found"),
    "an id of another kind": (OPERATIONS + b"/att_" + b"0" * 26, 404, "not-found"),
    "an id with SQL": (OPERATIONS + b"/op_'%20OR%201=1--", 404, "not-found"),
    "an id with a glob": (OPERATIONS + b"/op_%25", 404, "not-found"),
    "no such call": (PREFIX.encode() + b"/operators", 404, "not-found"),
    "no such version": (b"/api/v9/operations", 404, "not-found"),
    "a slash too many": (OPERATIONS + b"/", 404, "not-found"),
    "steps upward": (PREFIX.encode() + b"/../v1/operations/x", 404, "not-found"),
    "the docs page": (PREFIX.encode() + b"/docs", 404, "not-found"),
}


@pytest.mark.parametrize(("target", "status", "slug"), ADDRESSES.values(), ids=ADDRESSES)
def test_a_hostile_address_is_a_problem(
    server: WebServer, cast: Cast, target: bytes, status: int, slug: str
) -> None:
    answer = server.send_raw(request(target, key=cast.key()[0]))
    assert (answer.status, slug_of(answer)) == (status, slug)


@pytest.mark.parametrize(
    "host", [b"evil.example", b"127.0.0.1@evil.example", b"a_b", b"\xc3\xa9", b"[::1", b""]
)
def test_a_bad_host_is_a_problem(server: WebServer, cast: Cast, host: bytes) -> None:
    answer = server.send_raw(request(OPERATIONS, key=cast.key()[0], host=host))
    assert answer.status in {0, 400}
    if answer.headers.get("content-type"):
        assert slug_of(answer) == "bad-request"


HEADERS = {
    "NUL": b"X-A: a\x00b\r\n",
    "control character": b"X-A: a\x07b\r\n",
    "lone CR": b"X-A: a\rb\r\n",
    "lone LF": b"X-A: a\nb\r\n",
    "folded": b"X-A: a\r\n b\r\n",
    "NUL in a cookie": b"Cookie: sessionid=a\x00b\r\n",
    "space before the colon": b"X-A : a\r\n",
    "huge": b"X-A: " + b"a" * 100_000 + b"\r\n",
    "two lengths": b"Content-Length: 5\r\n",
    "length and chunks": b"Transfer-Encoding: chunked\r\n",
}


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_a_hostile_header_never_fails_the_server(server: WebServer, cast: Cast, headers: bytes) -> None:
    before = stored()
    intent = PREFIX.encode() + b"/intents"
    answer = server.send_raw(request(intent, key=cast.key()[0], method=b"POST", headers=headers, body=b"{}"))
    assert answer.status == 0 or 400 <= answer.status < 500, answer
    assert stored() == before


def test_an_odd_cookie_changes_nothing(api: Api) -> None:
    for cookie in ("sessionid=x", "sessionid=\xff", "csrftoken=;;;=", "messages=[]"):
        answer = api.http.get("/operations", headers={b"Cookie": cookie.encode("latin-1")})
        assert answer.status_code == 200


@pytest.mark.parametrize("method", [b"TRACE", b"DELETE", b"PATCH", b"OPTIONS", b"PROPFIND", b"BREW"])
def test_other_methods_are_refused(server: WebServer, cast: Cast, method: bytes) -> None:
    answer = server.send_raw(request(OPERATIONS, key=cast.key()[0], method=method))
    assert (answer.status, slug_of(answer)) == (405, "method-not-allowed")
    assert answer.headers["allow"]


def test_a_call_says_which_methods_it_takes(api: Api) -> None:
    answer = api.http.post("/operations", json={})
    assert (answer.status_code, slug_of(answer), answer.headers["Allow"]) == (
        405,
        "method-not-allowed",
        "GET",
    )


LENGTHS = {
    "longer than the body": (len(BODY) + 10, {0, 400}),
    "shorter than the body": (len(BODY) - 10, {400}),
    "zero": (0, {400}),
    "negative": (b"-1", {400}),
    "no number": (b"ten", {400}),
    "beyond all": (b"9" * 30, {400, 413}),
    "beyond what is read": (b"999999999", {413}),
    "missing": (b"", {400, 411}),
}


@pytest.mark.parametrize(("length", "statuses"), LENGTHS.values(), ids=LENGTHS)
def test_a_length_that_lies_stores_nothing(
    server: WebServer, cast: Cast, length: int | bytes, statuses: set[int]
) -> None:
    before = stored()
    intent = PREFIX.encode() + b"/intents"
    answer = server.send_raw(
        request(intent, key=cast.key()[0], method=b"POST", body=BODY, length=length),
        then_close=length == len(BODY) + 10,
    )
    assert answer.status in statuses
    assert stored() == before


def test_forged_headers_of_a_proxy_or_htmx_change_nothing(server: WebServer, cast: Cast) -> None:
    forged = (
        b"X-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 10.0.0.1\r\n"
        b"HX-Request: true\r\nHX-Current-URL: http://evil.example/\r\nHX-Target: x\r\n"
        b"X-Request-Id: forged\r\nX-HTTP-Method-Override: DELETE\r\n"
    )
    body = b'{"operation_key": "held", "tool": "pay.held", "args": {}}'
    answer = server.send_raw(
        request(PREFIX.encode() + b"/intents", key=cast.key()[0], method=b"POST", headers=forged, body=body)
    )
    assert answer.status == 202
    assert answer.json()["review_url"].startswith("http://127.0.0.1")
    assert answer.headers["x-request-id"].startswith("req_")


def test_every_answer_has_a_request_id_of_its_own(api: Api) -> None:
    ids = {api.get("/operations").headers["X-Request-Id"] for _ in range(3)}
    ids.add(api.get("/nowhere").headers["X-Request-Id"])
    assert len(ids) == 4


def test_garbage_is_answered_or_dropped(server: WebServer) -> None:
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"\x00" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
    ):
        answer: RawAnswer = server.send_raw(garbage, then_close=True)
        assert answer.status == 0 or 400 <= answer.status < 506
    assert server.send_raw(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").status == 200
