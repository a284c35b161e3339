"""A database that does not answer is unavailable, never a fault of the page."""

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client, RequestFactory

from config.errors import failed


@pytest.mark.parametrize(
    ("error", "method", "status", "says"),
    [
        (OperationalError("gone"), "GET", 503, "Nothing was changed"),
        (InterfaceError("closed"), "GET", 503, "Nothing was changed"),
        (OperationalError("gone at commit"), "POST", 503, "Open the item again"),
        (ValueError("ours"), "GET", 500, "a fault of ours"),
    ],
)
def test_the_page_for_an_unhandled_error(error: Exception, method: str, status: int, says: str) -> None:
    request = RequestFactory().generic(method, "/review/")
    try:
        raise error
    except type(error):
        response = failed(request)
    assert response.status_code == status
    assert says in response.content.decode()


@pytest.mark.django_db
def test_readiness_needs_every_migration(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "up"}
    assert client.get("/readyz").json() == {"status": "ready"}
    assert client.post("/readyz").status_code in {403, 405}


@pytest.mark.django_db
def test_pages_are_sent_with_the_strict_policy(client: Client) -> None:
    policy = client.get("/sign-in/").headers["Content-Security-Policy"]
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
