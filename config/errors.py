"""Which page answers what went wrong, where no view could say so itself."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse

from dashboard import errors

SAFE_METHODS = {"GET", "HEAD"}


def failed(request: HttpRequest) -> HttpResponse:
    """503 where the database did not answer, else 500.

    A press may have been recorded before the connection broke, so only a read is told that nothing changed.
    """
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return errors.failed(request)
    if request.method in SAFE_METHODS:
        return errors.busy(request)
    response = errors.failed(request)
    response.status_code = 503
    return response
