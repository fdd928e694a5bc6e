from http import HTTPStatus
from typing import Any


class RefusalError(Exception):
    """A rule of the site refuses this.

    The site's own API answers with the status, code and sentence (web.rest). A 404 and a refusal with `wait` have the
    usual words instead. Apps get Mastodon's words and status 422, unless clientapi.errors names others. A page that
    doesn't catch the refusal answers 400, 403 or 404 (web.outage). What it catches, it says in the reader's language.
    """

    status: int = HTTPStatus.BAD_REQUEST
    code = ""
    sentence = ""
    """Empty: the exception's message."""
    field = ""
    """The field of the body that is wrong."""
    wait: float | None = None
    """Seconds until the next try. The answer is 429 then, whatever the status, and says why if it has a field."""

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


class MissingError(RefusalError):
    """It is not there, or the caller may not see it. A look-up of rows may raise `DoesNotExist` instead."""

    status = HTTPStatus.NOT_FOUND


class NotOwnError(RefusalError):
    """It belongs to another member."""

    status = HTTPStatus.FORBIDDEN
    sentence = "It is not yours."
