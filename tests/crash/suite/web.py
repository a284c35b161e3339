"""The web child: the product's WSGI application over real HTTP, on a socket that its lane keeps open."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.db import connections

from tests.crash.suite.children import Line, Unplanned
from tests.crash.suite.injection import AnswerLost, Injector
from tests.crash.suite.points import ANSWERS


class _Handler(WSGIRequestHandler):
    """Hands its connection to the application, so that an answer can be lost."""

    disable_nagle_algorithm = True

    def get_environ(self) -> dict[str, Any]:
        return {**super().get_environ(), "suite.connection": self.connection}

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silent."""


class _Server(ThreadedWSGIServer):
    daemon_threads = True

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(listening.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.server_name, self.server_port = listening.getsockname()
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that was killed went away."""


def losing_answers(application: Any, injector: Injector) -> Callable[..., Iterable[bytes]]:
    """The application, whose finished answers pass one more point before they leave. A 500 that no planned
    error explains is told."""

    def answered(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        injector.opened(None)

        def started(status: str, *more: Any) -> Any:
            if status.startswith("500") and not injector.has_failed:
                injector.tell(unplanned=f"{environ['PATH_INFO']} was answered with {status}")
            return start_response(status, *more)

        body: Iterable[bytes] = application(environ, started)
        point = f"{injector.last_transaction}.answer"
        if point in ANSWERS:
            try:
                injector.reached(point)
            except AnswerLost:
                with contextlib.suppress(OSError):
                    environ["suite.connection"].shutdown(socket.SHUT_RDWR)
        return body

    return answered


def _pool_connections() -> None:
    """Each thread of the product's web server takes its connection from a pool (config/settings.py)."""
    settings = connections["default"].settings_dict
    settings["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 16, "timeout": 5.0}
    settings["CONN_MAX_AGE"] = 0


def serve(line: Line, injector: Injector, listening: socket.socket) -> None:
    """Serve, and be armed, until killed."""
    from config.wsgi import application

    _pool_connections()
    logging.getLogger("ledger.ingest.api").addHandler(Unplanned(line))
    server = _Server(listening)
    server.set_app(losing_answers(application, injector))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 3600}, daemon=True).start()

    def answer(command: dict[str, Any]) -> None:
        injector.obey(command)

    line.answer_forever(answer)
