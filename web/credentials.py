from rest_framework.request import Request


class Bounded:
    """Base of credentials (`request.auth`) that open only some addresses."""

    def check(self, request: Request) -> None:
        """Raise PermissionDenied for an address that it does not open."""
        raise NotImplementedError
