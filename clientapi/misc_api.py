"""The rest over HTTP: what is popular, reports, choices, and what the site does not have, as Mastodon says it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from about import announcing, site
from accounts.actions import dismiss_announcement
from accounts.models import User
from clientapi import html
from clientapi.account_api import user_or_404
from clientapi.entities import Account, Announcement, moment
from clientapi.errors import NOT_OFFERED, ClientView, InvalidError, OpenView, caller_of, nothing, reader_of
from clientapi.params import Params
from clientapi.people import accounts_of
from clientapi.presenting import statuses
from clientapi.search_api import TagEntity
from discover.popular import popular_items
from items.models import Item
from items.text import canonical_tag
from items.trending import trends
from moderation import reports
from moderation.models import REPORT_LENGTH, ReportReason
from relations.suggestions import suggestions
from web.rest import FeedResponse, spend

POPULAR = 20
REPORTED = 20
"""Statuses of one report."""
REASONS = {"spam": ReportReason.SPAM, "legal": ReportReason.ILLEGAL}
CATEGORIES = frozenset({"spam", "legal", "violation", "other"})


class EmptyView(OpenView):
    """A list of what the site does not have, for everybody."""

    body: Any = []

    def get(self, request: Request, **named: str) -> HttpResponse:
        """The empty answer."""
        return FeedResponse(self.body)


class OwnEmptyView(ClientView):
    """The same of what would be the caller's own."""

    def get(self, request: Request) -> HttpResponse:
        """The empty answer."""
        return FeedResponse([])


class EmptyOfAccountView(OpenView):
    """The same of an account."""

    def get(self, request: Request, account_id: str) -> HttpResponse:
        """The empty answer, of an account that the caller may know of."""
        user_or_404(account_id, reader_of(request))
        return FeedResponse([])


class EmptyObjectView(EmptyView):
    """The same where Mastodon has an object."""

    body: Any = {}


class PreferencesView(ClientView):
    """How the caller writes and reads, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """The defaults of the site."""
        return FeedResponse(
            {
                "posting:default:visibility": "public",
                "posting:default:sensitive": False,
                "posting:default:language": caller_of(request).language or None,
                "reading:expand:media": "default",
                "reading:expand:spoilers": False,
                "reading:autoplay:gifs": False,
            }
        )


class RulesView(OpenView):
    """The rules of the site, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """The rules in force."""
        return FeedResponse([{"id": str(rule.id), "text": rule.text, "hint": ""} for rule in site.current().rules])


class DescriptionView(OpenView):
    """The long description of the site, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """The description as HTML. When it was written is not kept: the site has it as of now."""
        return FeedResponse({"updated_at": None, "content": html.simple(site.current().description)})


# --- The announcement ------------------------------------------------------------------------------------
def _number(mark: str) -> str:
    """The id of an announcement: a decimal one, as all ids are."""
    return str(int(mark[:13], 16) + 1)


class AnnouncementsView(OpenView):
    """The announcement of the site, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """The announcement while it counts, dismissed or not."""
        here, reader = site.current(), reader_of(request)
        if not here.news:
            return FeedResponse([])
        mark, changed = announcing.mark(here.news), moment(here.changed_at or datetime.now(UTC))
        body = Announcement(
            id=_number(mark),
            content=html.simple(here.news),
            starts_at=None,
            ends_at=moment(here.announcement_until) if here.announcement_until else None,
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
    """The dismissal of the announcement, over HTTP."""

    def post(self, request: Request, announcement_id: str) -> HttpResponse:
        """Note that the caller has read it. Raises NotFound for any but that of now."""
        reader, news = caller_of(request), site.current().news
        if not news or _number(announcing.mark(news)) != announcement_id:
            raise exceptions.NotFound
        dismiss_announcement(user=reader, mark=announcing.mark(news))
        return nothing()


# --- Popular things -------------------------------------------------------------------------------------
class TrendingTagsView(OpenView):
    """Popular hashtags, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """The most used hashtags of the week, with their uses by day, the newest first."""
        limit = _count(request, 10)
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        found = []
        for trend in trends(reader_of(request))[:limit]:
            entity = TagEntity.of(trend.tag)
            entity.history = [
                # Uses are counted, and not who they are of: there are at most as many.
                {"day": str(int((today - timedelta(days=ago)).timestamp())), "uses": str(uses), "accounts": str(uses)}
                for ago, uses in enumerate(reversed(trend.days))
            ]
            found.append(entity)
        return FeedResponse(found)


class TrendingStatusesView(OpenView):
    """Popular posts, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """Public posts that are popular now, one of a sender."""
        reader = reader_of(request)
        return FeedResponse(statuses(popular_items(reader, count=_count(request, POPULAR)), reader))


def _count(request: Request, most: int) -> int:
    return min(Params(request).number("limit", least=1, most=10**9, default=most) or most, most)


class Suggestion(msgspec.Struct):
    """A user whom the caller may want to follow."""

    source: str
    sources: Sequence[str]
    account: Account


class FirstSuggestionsView(ClientView):
    """Users whom the caller may want to follow, over HTTP, by the first version."""

    def get(self, request: Request) -> HttpResponse:
        """The users that the site's own pages propose."""
        return FeedResponse(accounts_of(suggestions(caller_of(request))))


class SuggestionsView(ClientView):
    """The same by the second version."""

    def get(self, request: Request) -> HttpResponse:
        """The users that the site's own pages propose."""
        found = accounts_of(suggestions(caller_of(request)))
        return FeedResponse([Suggestion("global", ["most_followed"], account) for account in found])


class TagView(OpenView):
    """A hashtag, over HTTP."""

    def get(self, request: Request, tag: str) -> HttpResponse:
        """The hashtag, in its canonical form. Raises NotFound for a word that is none."""
        return FeedResponse(tag_or_404(tag))


class FollowTagView(ClientView):
    """Hashtags that are followed, which the site does not have."""

    def post(self, request: Request, tag: str) -> HttpResponse:
        """422."""
        tag_or_404(tag)
        raise InvalidError(f"Following a hashtag {NOT_OFFERED}")


def tag_or_404(text: str) -> TagEntity:
    """The hashtag that a text spells. Raises NotFound."""
    tag = canonical_tag(text.removeprefix("#"))
    if tag is None:
        raise exceptions.NotFound
    return TagEntity.of(tag)


# --- Reports ---------------------------------------------------------------------------------------------
class ReportBody(msgspec.Struct):
    """A report, as its maker sees it. Its outcome is not told."""

    id: str
    action_taken: bool
    action_taken_at: str | None
    category: str
    comment: str
    forwarded: bool
    created_at: str
    status_ids: list[str]
    rule_ids: list[str]
    target_account: Account


class ReportsView(ClientView):
    """Reports, over HTTP."""

    rates: Mapping[str, str] = {"POST": "report"}

    def post(self, request: Request) -> HttpResponse:
        """Tell the moderators of statuses of one account, each of which counts as a report; again changes nothing."""
        reporter, params = caller_of(request), Params(request)
        account = params.id("account_id")
        target = user_or_404(str(account or ""), reporter)
        items = _reported(params, target.pk, reporter)
        if len(items) > 1:  # a report by the site's own address is of one
            spend(self.rates["POST"], str(reporter.pk), len(items) - 1)
        category = params.choice("category", CATEGORIES, default="other")
        comment = params.text("comment", most=REPORT_LENGTH)
        rules = _rules(params)
        reason = REASONS.get(category, ReportReason.OTHER)
        try:
            for item in items:
                reports.report(item=item, reporter=reporter, reason=reason, text=comment, rule=next(iter(rules), None))
        except reports.OwnItemError as error:
            raise InvalidError("Validation failed: That status is yours") from error
        body = ReportBody(
            id=str(items[0].pk),
            action_taken=False,
            action_taken_at=None,
            category=category,
            comment=comment,
            forwarded=False,
            created_at=moment(datetime.now(UTC)),
            status_ids=[str(item.pk) for item in items],
            rule_ids=[str(rule) for rule in rules],
            target_account=accounts_of([target])[0],
        )
        return FeedResponse(body)


def _reported(params: Params, target_id: int, reporter: Any) -> list[Item]:
    """The statuses that are reported. Raises NotFound and InvalidError."""
    ids = params.ids("status_ids", most=REPORTED)
    if not ids:
        raise InvalidError("Validation failed: Choose a status; reports of whole accounts are not offered by this site")
    items = list(Item.objects.visible_to(reporter).filter(pk__in=ids, sender=target_id))
    if len(items) < len(ids):
        raise exceptions.NotFound
    return items


def _rules(params: Params) -> list[int]:
    known = {rule.id for rule in site.current().rules}
    rules = params.ids("rule_ids", most=len(known) + 1)
    if not known.issuperset(rules):
        raise InvalidError("Validation failed: There is no such rule")
    return rules
