"""Credentials of the API that open some addresses only."""

from rest_framework.request import Request


class Bounded:
    """The `request.auth` of a credential that opens some addresses only. `web.rest.ApiView` asks it."""

    def check(self, request: Request) -> None:
        """Raise PermissionDenied at an address that the credential does not open."""
        raise NotImplementedError
