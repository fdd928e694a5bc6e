import re

from django.http import HttpResponse


def whole(response: HttpResponse) -> tuple[bytes, frozenset[tuple[str, str]]]:
    """Without the request's id."""
    return response.content, frozenset(pair for pair in response.items() if pair[0] != "X-Request-ID")


OF_THE_MOMENT = re.compile(
    r'nonce="[^"]*"|name="(?:csrfmiddlewaretoken|next)" value="[^"]*"|"X-CSRFToken": "[^"]*"|[?]next=[^"]*'
)


def lasting(response: HttpResponse) -> str:
    """Without its address and what changes with every answer."""
    return OF_THE_MOMENT.sub("", response.content.decode())
