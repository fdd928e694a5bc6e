"""Answers, compared whole."""

from django.http import HttpResponse


def whole(response: HttpResponse) -> tuple[bytes, frozenset[tuple[str, str]]]:
    """All that a client gets, but for the request's own id."""
    return response.content, frozenset(pair for pair in response.items() if pair[0] != "X-Request-ID")
