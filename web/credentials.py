from rest_framework.request import Request

ANY_SCOPE = "any"
WHOLE = ""
"""Opens to tokens with the scope `read` for GET, and `write` for other methods. A part such as `read:statuses` is not
enough.
"""


class ScopedView:
    """What a view says about apps' tokens."""

    scopes: str | None = None
    """Which tokens open it. "statuses": `read:statuses` for GET, `write:statuses` for other methods. "push" or
    "write:media": this scope for all methods. `ANY_SCOPE`: every token. `WHOLE`: see there. None: no token.
    """
    opens_to_strangers = False
    """Whether a token without the scope reads as a stranger."""


class BoundedCredential:
    """Base of credentials (`request.auth`) that open only some views."""

    def check(self, request: Request, view: ScopedView) -> None:
        """Raise PermissionDenied for a view that it does not open."""
        raise NotImplementedError
