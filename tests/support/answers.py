"""Answers, compared whole."""

import re

from django.http import HttpResponse


def whole(response: HttpResponse) -> tuple[bytes, frozenset[tuple[str, str]]]:
    """All that a client gets, but for the request's own id."""
    return response.content, frozenset(pair for pair in response.items() if pair[0] != "X-Request-ID")


OF_THE_MOMENT = re.compile(
    r'nonce="[^"]*"|name="(?:csrfmiddlewaretoken|next)" value="[^"]*"|"X-CSRFToken": "[^"]*"|[?]next=[^"]*'
)


def lasting(response: HttpResponse) -> str:
    """A page without the parts that are drawn anew for every answer, and without its own address."""
    return OF_THE_MOMENT.sub("", response.content.decode())
