"""Popular things, preferences, the announcement, and empty answers."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.about import announcing, legal, site
from accounts.about.words import headed_paragraphs
from accounts.actions import dismiss_announcement
from accounts.callers import reader_of
from accounts.models import User
from clientapi import html
from clientapi.accounts.people import accounts_of
from clientapi.entities import QUOTE_POLICIES, SHOWN_AS, Account, Announcement, time_text
from clientapi.errors import ClientView, OpenView, caller_of, empty_answer
from clientapi.params import Params
from clientapi.rest.instance import rules
from clientapi.rest.tags import tags_of
from clientapi.statuses.presenting import statuses
from discover.popular import popular_items
from items.tags.trending import trends
from relations.suggestions import suggestions
from relations.visibility import users_visible_to
from web.credentials import ANY_SCOPE
from web.rest import FeedResponse

POPULAR = 20
SUGGESTED = 6


class EmptyView(OpenView):
    """An empty list, for anyone."""

    scopes = ANY_SCOPE
    body: Any = []

    def get(self, request: Request, **named: str) -> HttpResponse:
        """Return the empty body."""
        return FeedResponse(self.body)


class OwnEmptyView(ClientView):
    """An empty list, for users."""

    def get(self, request: Request) -> HttpResponse:
        """Return an empty list."""
        return FeedResponse([])


class EmptyOfAccountView(OpenView):
    """An empty list about an account."""

    scopes = "accounts"

    def get(self, request: Request, account_id: int) -> HttpResponse:
        """Return an empty list. Raises NotFound."""
        users_visible_to(reader_of(request)).get(pk=account_id)
        return FeedResponse([])


class EmptyObjectView(EmptyView):
    body: Any = {}


class PreferencesView(ClientView):
    scopes = "accounts"

    def get(self, request: Request) -> HttpResponse:
        """Return the defaults of new posts."""
        user = caller_of(request)
        return FeedResponse(
            {
                "posting:default:visibility": SHOWN_AS[user.post_visibility],
                "posting:default:sensitive": user.post_sensitive,
                "posting:default:quote_policy": QUOTE_POLICIES[user.quotable_by],
                "posting:default:language": user.post_language or None,
                "reading:expand:media": "default",
                "reading:expand:spoilers": False,
                "reading:autoplay:gifs": False,
            }
        )


class RulesView(OpenView):
    scopes = ANY_SCOPE

    def get(self, request: Request) -> HttpResponse:
        """Return the rules in force."""
        return FeedResponse(rules())


class DescriptionView(OpenView):
    scopes = ANY_SCOPE

    def get(self, request: Request) -> HttpResponse:
        """Return the description as HTML, with the time of the last change to the site's settings."""
        here = site.current()
        changed = time_text(here.changed_at or datetime.now(UTC))
        return FeedResponse({"updated_at": changed, "content": html.html_without_mentions(here.description)})


def _today() -> datetime:
    """When a draft was "last changed": it follows the software."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


class PrivacyView(OpenView):
    scopes = ANY_SCOPE

    def get(self, request: Request) -> HttpResponse:
        """Return the privacy policy as HTML."""
        found = legal.privacy()
        changed = time_text(found.changed_at or _today())
        return FeedResponse({"updated_at": changed, "content": "".join(headed_paragraphs(found.text))})


class TermsView(OpenView):
    scopes = ANY_SCOPE

    def get(self, request: Request) -> HttpResponse:
        """Return the terms as HTML."""
        found = legal.terms()
        since = (found.changed_at or _today()).date().isoformat()
        content = "".join(headed_paragraphs(found.text))
        return FeedResponse({"effective_date": since, "effective": True, "content": content, "succeeded_by": None})


# --- The announcement ------------------------------------------------------------------------------------
def _announcement_id(mark: str) -> str:
    return str(int(mark[:13], 16) + 1)


class AnnouncementsView(OpenView):
    scopes = "accounts"
    opens_to_strangers = True

    def get(self, request: Request) -> HttpResponse:
        """Return the announcement, dismissed or not."""
        here, reader = site.current(), reader_of(request)
        if not here.news:
            return FeedResponse([])
        mark, changed = announcing.news_digest(here.news), time_text(here.changed_at or datetime.now(UTC))
        body = Announcement(
            id=_announcement_id(mark),
            content=html.html_without_mentions(here.news),
            starts_at=None,
            ends_at=time_text(here.announcement_until) if here.announcement_until else None,
            all_day=False,
            published=True,
            published_at=changed,
            updated_at=changed,
            read=reader.dismissed_announcement == mark if isinstance(reader, User) else msgspec.UNSET,
            mentions=[],
            statuses=[],
            tags=[],
            emojis=[],
            reactions=[],
        )
        return FeedResponse([body])


class DismissedView(ClientView):
    scopes = "accounts"

    def post(self, request: Request, announcement_id: str) -> HttpResponse:
        """Mark the announcement as read. Raises NotFound for another id."""
        reader, news = caller_of(request), site.current().news
        if not news or _announcement_id(announcing.news_digest(news)) != announcement_id:
            raise exceptions.NotFound
        dismiss_announcement(user=reader, mark=announcing.news_digest(news))
        return empty_answer()


# --- Popular things -------------------------------------------------------------------------------------
class TrendingTagsView(OpenView):
    scopes = "statuses"
    opens_to_strangers = True

    def get(self, request: Request) -> HttpResponse:
        """List the week's top hashtags, with daily uses."""
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        reader = reader_of(request)
        found = trends(reader)[_offset_slice(request, 10)]
        entities = tags_of([trend.tag for trend in found], reader)
        for entity, trend in zip(entities, found, strict=True):
            entity.history = [
                # Only uses are counted. The number of accounts is at most that.
                {"day": str(int((today - timedelta(days=ago)).timestamp())), "uses": str(uses), "accounts": str(uses)}
                for ago, uses in enumerate(reversed(trend.days))
            ]
        return FeedResponse(entities)


class TrendingStatusesView(OpenView):
    scopes = "statuses"
    opens_to_strangers = True

    def get(self, request: Request) -> HttpResponse:
        """List popular posts, one per sender."""
        reader = reader_of(request)
        return FeedResponse(statuses(popular_items(reader, count=POPULAR)[_offset_slice(request, POPULAR)], reader))


def _offset_slice(request: Request, most: int) -> slice:
    params = Params(request)
    first = params.number("offset", least=0, most=10**9, default=0) or 0
    return slice(first, first + min(params.number("limit", least=1, most=10**9, default=most) or most, most))


class SuggestedAccount(msgspec.Struct):
    """A user to follow."""

    source: str
    sources: Sequence[str]
    account: Account


class FirstSuggestionsView(ClientView):
    """Suggested accounts, version 1."""

    scopes = "accounts"

    def get(self, request: Request) -> HttpResponse:
        """Return the site's suggestions."""
        return FeedResponse(accounts_of(_suggested(request)))


class SuggestionsView(ClientView):
    """Suggested accounts with the reason for each (Mastodon's second version of this address)."""

    scopes = "accounts"

    def get(self, request: Request) -> HttpResponse:
        """Return the site's suggestions."""
        found = accounts_of(_suggested(request))
        return FeedResponse([SuggestedAccount("global", ["most_followed"], account) for account in found])


def _suggested(request: Request) -> list[User]:
    return suggestions(caller_of(request), count=SUGGESTED)[_offset_slice(request, SUGGESTED)]
