"""API credentials that open only some addresses."""

from rest_framework.request import Request


class Bounded:
    """The `request.auth` of a credential that opens only some addresses."""

    def check(self, request: Request) -> None:
        """Raise PermissionDenied if the credential does not open this address."""
        raise NotImplementedError
