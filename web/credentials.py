from rest_framework.request import Request

ANY_SCOPE = "any"
WHOLE = ""
"""The scopes `read` and `write` themselves, not their parts."""


class Scoped:
    """What a view says about apps' tokens."""

    scopes: str | None = None
    """Which tokens open it: a part of `read` and `write` ("statuses"), one scope for all methods ("push"), `ANY_SCOPE`,
    `WHOLE`, or None: no token.
    """
    opens_to_strangers = False
    """Whether a token without the scope reads as a stranger."""


class BoundedCredential:
    """Base of credentials (`request.auth`) that open only some views."""

    def check(self, request: Request, view: Scoped) -> None:
        """Raise PermissionDenied for a view that it does not open."""
        raise NotImplementedError
