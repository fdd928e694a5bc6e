"""Polls of Mastodon's API. A poll has the id of its status."""

from typing import Any

from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.callers import reader_of
from clientapi.entities import Poll
from clientapi.errors import ClientView, InvalidError, OpenView, caller_of
from clientapi.params import Params
from items import polls
from items.bodies import ItemBody
from items.finding import item_row
from items.polls import LONGEST, SHORTEST
from items.profiles.profile import visible_item
from web.rest import FeedResponse


def new_poll(params: Params) -> dict[str, Any] | None:
    """The poll of a new status, or None. Raises InvalidError."""
    if params.is_blank("poll"):
        return None
    poll = params.part("poll")
    lasts = poll.number("expires_in", least=int(SHORTEST.total_seconds()), most=int(LONGEST.total_seconds()))
    if lasts is None:
        raise InvalidError("Validation failed: poll[expires_in] must be given")
    if poll.flag("hide_totals"):
        raise InvalidError("Validation failed: poll[hide_totals] is not offered; totals are shown to those who voted")
    return {"options": poll.words("options"), "multiple": poll.flag("multiple"), "closes_in": lasts}


def edited_poll(params: Params, before: dict[str, Any]) -> dict[str, Any]:
    """The poll after an edit. Apps send it with every edit, so it stays unless its answers change."""
    poll = new_poll(params)
    if poll is None or (poll["options"], poll["multiple"]) == (before["options"], before["multiple"]):
        return before
    return poll


def _shown(item: ItemBody, request: Request) -> HttpResponse:
    poll = Poll.of(item.shown, is_signed_in=request.user.is_authenticated)
    if poll is None:
        raise exceptions.NotFound
    return FeedResponse(poll)


class PollView(OpenView):
    scopes = "statuses"

    def get(self, request: Request, poll_id: int) -> HttpResponse:
        """Return the poll of a visible status."""
        return _shown(visible_item(poll_id, reader_of(request)), request)


class VotesView(ClientView):
    scopes = "statuses"

    def post(self, request: Request, poll_id: int) -> HttpResponse:
        """Vote, or choose further answers of a poll of several. Return the poll."""
        user, params = caller_of(request), Params(request)
        item = item_row(poll_id, user)
        try:
            choices = [int(str(one)) for one in params.value_list("choices")]
        except ValueError as error:
            raise polls.ChoiceError from error
        polls.vote(user=user, item=item, choices=choices, may_add=True)
        return _shown(visible_item(poll_id, user), request)
