"""The key that asks is judged as it is when leave is given, not as it was when it signed in."""

from __future__ import annotations

import pytest

from ledger.lifecycle import LeaveProblem, LeaveRefused
from ledger.models import ApiKey
from ledger.transactions import database_clock
from tests.support import make
from tests.support.cast import cast

pytestmark = pytest.mark.django_db


def test_a_key_revoked_after_it_signed_in_gets_no_leave() -> None:
    key = cast().key
    attempt = make.recorded(key)
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=database_clock())
    answer = make.ask_leave(key, attempt)
    assert isinstance(answer, LeaveRefused)
    assert (answer.problem, answer.reasons) == (LeaveProblem.NOT_AUTHORISED, ("key-revoked",))
