import re

from django.http import HttpResponse


def whole(response: HttpResponse) -> tuple[bytes, frozenset[tuple[str, str]]]:
    """Everything a client gets except the request's id."""
    return response.content, frozenset(pair for pair in response.items() if pair[0] != "X-Request-ID")


OF_THE_MOMENT = re.compile(r'name="(?:csrfmiddlewaretoken|next)" value="[^"]*"|"X-CSRFToken": "[^"]*"|[?]next=[^"]*')


def lasting(response: HttpResponse) -> str:
    """A page without its address and the parts that always change."""
    return OF_THE_MOMENT.sub("", response.content.decode())
