from http import HTTPStatus
from typing import Any


class RefusalError(Exception):
    """A rule of the site refuses this. The APIs answer with its status, code and sentence (web.rest, clientapi.errors).
    Pages say more where they catch it.
    """

    status: int = HTTPStatus.BAD_REQUEST
    code = ""
    sentence = ""
    """Empty: the exception's message."""
    field = ""
    """The field of the body that is wrong."""
    wait: float | None = None
    """Seconds until the next try: 429."""

    @property
    def words(self) -> str:
        """The sentence, else the message."""
        return self.sentence or str(self)

    def body(self) -> dict[str, Any]:
        """The answer's body in the site's own API."""
        if self.field:
            return {self.field: [self.words]}
        return {"detail": self.words} | ({"code": self.code} if self.code else {})


class ConflictError(RefusalError):
    """The present state does not allow this."""

    status = HTTPStatus.CONFLICT
