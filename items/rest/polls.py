from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user
from items import polls
from items.bodies import ItemBody
from items.finding import item_row
from items.hydrate import hydrate
from items.text import MOST_OPTIONS
from web.rest import ApiView, FeedResponse, Problem, StrictSerializer, body


class Ballot(StrictSerializer):
    """A vote: the places of the chosen answers, from 0."""

    choices = serializers.ListField(child=serializers.IntegerField(min_value=0), max_length=MOST_OPTIONS)


class VoteView(ApiView):
    """The caller's vote in a poll, over HTTP."""

    scopes = "statuses"
    takes_bodies = frozenset({"PUT"})

    @extend_schema(
        operation_id="vote",
        request=Ballot,
        responses={200: ItemBody, 409: OpenApiResponse(Problem, "The caller has voted, or the poll has ended.")},
    )
    def put(self, request: Request, item_id: int) -> HttpResponse:
        """Vote in a poll, once. Returns the item."""
        user = authenticated_user(request)
        choices = body(request, Ballot)["choices"]
        item = item_row(item_id, user)
        polls.vote(user=user, item=item, choices=choices)
        return FeedResponse(hydrate([item.pk], user)[0])
