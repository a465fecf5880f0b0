"""Errors of the library: each says what was attempted on which object, what was seen, and what to do next."""

from __future__ import annotations


class LibraryError(Exception):
    """An error that a person can act on.

    :param attempted: what was tried, with the object's name
    :param seen: what was observed instead of success
    :param remedy: what to do next, as a sentence
    """

    def __init__(self, attempted: str, seen: str, remedy: str) -> None:
        super().__init__(f"{attempted}: {seen.rstrip('. ')}. {remedy}")
        self.attempted = attempted
        self.seen = seen
        self.remedy = remedy


class ApiUnreachableError(LibraryError):
    """There is no API server to talk to: no client library, no kubeconfig, or nothing answers."""


class InvalidInputError(LibraryError):
    """What the caller gave cannot be used; nothing was attempted on the node."""


class RefusedError(LibraryError):
    """The API server answered and refused the request.

    :param status: HTTP status code of the answer
    :param message: the API server's own words
    """

    def __init__(self, attempted: str, seen: str, remedy: str, *, status: int, message: str) -> None:
        super().__init__(attempted, seen, remedy)
        self.status = status
        self.message = message
