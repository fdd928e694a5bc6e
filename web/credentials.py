from rest_framework.request import Request


class Bounded:
    """The `request.auth` of a credential that opens only some addresses."""

    def check(self, request: Request) -> None:
        """Raise PermissionDenied for an address that it does not open."""
        raise NotImplementedError
