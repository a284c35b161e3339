"""One text for two kinds of callers: those that wait in their thread, and those that await.

A verb is written once, as a coroutine that reaches outside only through an `Io`. For a `Blocking` object the
coroutine is run to its end on the spot, since a blocking `Io` never suspends; for an `Awaiting` one the
caller awaits it. On the class (`Calls.post_intent(calls, …)`) it is the coroutine function itself.
"""

import functools
from collections.abc import Callable, Coroutine
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


class Blocking:
    """Its verbs return when they are done."""


class Awaiting:
    """Its verbs are awaited."""


class twin(Generic[S, P, T]):  # noqa: N801  (used as a decorator)
    """A verb of both twins."""

    def __init__(self, verb: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> None:
        self._verb = verb
        self.__doc__ = verb.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self._verb
        bound = MethodType(self._verb, instance)
        return bound if isinstance(instance, Awaiting) else _finishing(bound)


def finished(verb: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends."""
    try:
        verb.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    verb.close()
    raise RuntimeError("a blocking call tried to wait for an event loop")


def _finishing(verb: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    @functools.wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return finished(verb(*args, **kwargs))

    return call
