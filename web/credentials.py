"""API credentials that open only some addresses."""

from rest_framework.request import Request


class Bounded:
    """The `request.auth` of a credential that opens only some addresses. `web.rest.ApiView` calls `check`."""

    def check(self, request: Request) -> None:
        """Raise PermissionDenied if the credential does not open this address."""
        raise NotImplementedError
