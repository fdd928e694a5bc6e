"""Every address, task and command of the grown site, by the users with the most data. Reads follow from the routes."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pyotp
from django.conf import settings
from django.contrib import admin
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.test import Client
from django.urls import URLPattern, resolve, reverse
from django.utils import timezone
from oauth2_provider.models import AccessToken
from rest_framework.test import APIClient

from accounts import actions as accounts
from accounts import recounting
from accounts.about import actions as about_actions
from accounts.about import site as about
from accounts.about.models import Rule, SignUp
from accounts.joining import applications
from accounts.joining_models import Application, Invitation
from accounts.levels import big_v
from accounts.mail.models import Letter
from accounts.models import Authenticator, User
from accounts.signing_in import places, recovery, second_factors
from clientapi.oauth.actions import OUT_OF_BAND
from clientapi.streaming import streaming
from clientapi.streaming.streams import ClientHearer, Stream
from community.archives.models import ArchiveImport
from discover import history, indexing, postgres
from feedsite import celery
from items import scheduling
from items.actions import edit, like
from items.filters.book import FilterCache
from items.hydrate import hydrate
from items.link_cards import actions as cards
from items.models import Filter, Item, LinkCard, Participant
from items.search import search
from items.search.query import parse
from live.models import LiveSession
from media.models import MediaFile
from moderation import hashes, senders
from moderation.models import Appeal, Case, Decision, PictureRule
from notifications.models import Act, PushSubscription
from operation.doctor import growth
from relations.actions import follower_count
from relations.models import CsvImport, List
from storage import quiet
from storage.events import (
    Edited,
    FiltersChanged,
    Listener,
    Notified,
    Position,
    Published,
    SessionChanged,
    Withdrawn,
)
from storage.queue import QUESTIONS
from stream import news as stream
from tests.support.addresses import ALL, API, address_of, client_patterns
from tests.support.archives import actor, address, boost, collection, files_of, note, zipped
from tests.support.factories import PASSWORD, ItemFactory
from tests.support.grown import DEVICE, FOLLOWEES, Grown
from tests.support.pictures import jpeg, mp4, upload
from tests.support.plans import Recorder
from timeline import active_fans, outbox
from timeline.fold import folds_and_originals
from timeline.senders import Scope
from timeline.truth import fetch_items

OF_PAGES = [(prefix, pattern) for prefix, pattern in ALL if prefix != API]
OF_API = [(prefix, pattern) for prefix, pattern in ALL if prefix == API]
READERS, EVENTS = 400, 100
"""The stream's connections, and the events in one query."""
DRAIN = 1_500
SCOPES = "read write follow push"

# --- Reading: {busy} is an item with much of everything, {middle} an id in the middle ---------------------
BUSY = {
    **dict.fromkeys(("item_id", "status_id"), "{busy}"),
    **dict.fromkeys(("scheduled_id", "post_id"), "{scheduled}"),
    **dict.fromkeys(("tag", "name"), "busy"),
    "username": "star",
    "account_id": "{star}",
    "poll_id": "{poll}",
    "conversation_id": "{talk}",
    "kind": "follows",
    "number": "1",
    "right": "1.1.1",
    "list_id": "{list}",
    "filter_id": "{filter}",
    "session_id": "{session}",
    "code": "3457d5",
    "first_id": "0",
}
"""What a route's parameter names, for reading. Others name an id in the middle."""
PAGES = [
    "/?last_id={middle}",
    "/?late=1",
    "/new?since_id={middle}&at=1",
    "/beside?at=live",
    "/beside?at=profile&name=star",
    "/beside?at=search&q=word3",
    "/sitemap-people-0.xml",
    "/welcome/people?tag=busy",
    "/lists/{list}?last_id={middle}",
    "/lists/{list}/new?since_id={middle}",
    "/lists/{list}?late=1",
    "/lists/{list}/new?since_id={middle}&at=1",
    "/search?q=word3",
    "/search?q=word3+word77",
    '/search?q="word3+word3"',
    "/search?q=%23busy",
    "/search?q=word3+%23busy+%23quiet1",
    "/search?q=from:star+word3",
    "/search?q=user",
    "/search?q=usre700",
    "/search?q=user&show=people",
    "/complete?q=@user",
    "/complete?q=%23b",
    "/tags/busy?last_id={middle}",
    "/conversations?last_id={middle}",
    "/conversations/{talk}?last_id={middle}&since=1",
    "/conversations/{talk}?after={middle}",
    "/conversations/new?to=star",
    "/items/{talk}",
    "/notifications/news?since_id=1",
    "/notifications/likes?last_id={middle}",
    "/notifications/follows",
    "/lists/{list}/edit?q=user",
    "/items/new?quote_of={busy}",
    "/items/new/media?ids={middle},1,2",
    "/items/{poll}",
    "/items/{busy}?last_id={middle}",
    "/items/{own}/menu",
    "/items/{quote}/menu",
    "/items/{busy}/quotes?last_id={middle}",
    "/items/{busy}/hidden-replies?last_id={middle}",
    "/items/{chain}",
    "/items/{quote}",
    "/items/{reply}",
    "/items/{busy}/likes?last_id=999999",
    "/items/{other}/report",
    "/decisions?last_id=999999",
    "/decisions?item={own}",
    "/items/{own}/edit",
    "/items/{own}/edits",
    "/items/{own}/delete",
    "/live/news?has={session}:1&since=1",
    "/@star?last_id={middle}",
    "/@star/media?last_id={middle}",
    "/@star/followers?last_id=999999",
    "/@reader",
    "/@reader/replies",
    "/@reader/media",
    "/@reader/followers",
    "/@reader/following",
    "/bookmarks?last_id=999999",
    "/settings/mutes?last_id=999999",
    "/settings/bells?last_id=999999",
    "/settings/export/mutes.csv",
    "/settings/export/blocks.csv",
    "/settings/export/lists.csv",
    "/settings/export/hashtags.csv",
    "/@user700/mute-for",
    "/@user700/note",
    "/@user700/report",
    "/invite/nonesuch",
    "/avatars/v2/1-41.png",
    "/emoji?q=smi",
    "/api/schema",
    "/api/docs",
    "/favicon.ico",
]
"""Besides the address of every route."""
ADDRESSES = [
    "timeline/home/new?since_id={middle}",
    "me/lists/{list}/timeline/new?since_id={middle}",
    "users/reader",
    "users/reader/items",
    "me/likes?last_id=999999",
    "me/mutes?last_id=999999",
    "search?q=word3",
    "search?q=word3&last_id={middle}",
    "items/{reply}/replies",
]
AGAIN = ["timeline/home", "timeline/home?last_id={middle}", "timeline/home/new?since_id={middle}", "live/feed"]
SOON = (timezone.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
MANY_NAMES = {"text": "word1 @star @reader @user1 @user2 #busy https://example.org/"}
WRITES: list[tuple[str, str, Any]] = [
    ("post", "me/scheduled", {"content": {"text": "soon"}, "reply_to": "{busy}", "publish_at": f"{SOON}:00Z"}),
    ("patch", "me/scheduled/{scheduled}", {"publish_at": f"{SOON}:30Z"}),
    ("delete", "me/scheduled/{scheduled}", None),
    *[(method, f"users/user700/{verb}", None) for verb in ("follow", "mute", "block") for method in ("put", "delete")],
    ("post", "me/filters", {"phrase": "word3"}),
    ("patch", "me/filters/{filter}", {"action": "hide"}),
    ("delete", "me/filters/{spare_filter}", None),
    ("delete", "tags/quiet7/follow", None),
    ("put", "tags/quiet7/follow", None),
    ("post", "me/lists", {"title": "made"}),
    ("put", "users/user700/follow", None),
    ("put", "me/lists/{made}/members/user700", None),
    ("put", "me/lists/{made}/members/user700", None),
    ("patch", "me/lists/{made}", {"exclusive": True}),
    ("delete", "me/lists/{made}/members/user700", None),
    ("delete", "me/lists/{made}", None),
    ("delete", "users/user700/follow", None),
    ("put", "users/user701/follow", {"reposts": False}),
    ("put", "users/user701/follow", {"reposts": True}),
    *[(method, "users/user701/bell", None) for method in ("put", "delete")],
    ("put", "users/user701/mute", {"expires_in": 60, "notifications": False}),
    ("delete", "users/user701/mute", None),
    ("delete", "users/user707/follower", None),
    ("put", "users/user702/follow", None),
    ("delete", "users/user702/follow", None),
    ("post", "me/follow-requests/user703/accept", None),
    ("post", "me/follow-requests/user704/reject", None),
    ("post", "items", {"content": MANY_NAMES}),
    ("post", "items", {"content": {"text": "word1 forbidden"}}),
    ("post", "items", {"content": {"text": "an answer @user2"}, "reply_to": "{busy}"}),
    ("post", "items/{own}/hidden-replies/{under_own}", None),
    ("delete", "items/{own}/hidden-replies/{under_own}", None),
    ("post", "items", {"content": MANY_NAMES, "repliable_by": "mentioned"}),
    ("post", "items", {"content": {"text": "a quote"}, "quote_of": "{busy}"}),
    ("delete", "items/{quoted}/quotes/{quote}", None),
    ("post", "items", {"content": {"text": "@star @reader @user1 @user2"}, "visibility": "mentioned"}),
    ("post", "items", {"content": {"text": "an answer"}, "reply_to": "{talk}"}),
    ("post", "me/conversations", {"usernames": ["user1", "user2", "user3"], "content": {"text": "hello"}}),
    ("post", "me/conversations/{talk}/read", None),
    ("post", "me/conversations/{talk}/accept", None),
    ("delete", "me/conversations/{talk}", None),
    ("put", "items/{poll}/vote", {"choices": [0]}),
    ("put", "items/{own}/pin", None),
    ("delete", "items/{own}/pin", None),
    ("put", "items/{busy}/like", None),
    ("delete", "items/{busy}/like", None),
    ("put", "items/{busy}/mute", None),
    ("delete", "items/{busy}/mute", None),
    ("put", "items/{busy}/bookmark", None),
    ("delete", "items/{busy}/bookmark", None),
    ("post", "items/{other}/repost", None),
    ("post", "items/{other}/report", {"reason": "spam"}),
    ("post", "users/user700/report", {"reason": "spam"}),
    ("put", "items/{other}/not-interested", None),
    ("delete", "items/{other}/not-interested", None),
    ("post", "me/notifications/read", {"up_to": "{middle}"}),
    ("post", "me/push", DEVICE),
    ("get", "me/push", None),
    ("delete", "me/push", None),
    ("post", "seen/plays", {"ids": ["{busy}"]}),
    ("post", "seen/plays/batch", {"plays": [{"user_id": "{me}", "ids": ["{busy}"]}]}),
    ("post", "seen/issued", {"ids": ["{busy}"]}),
    ("post", "seen/filter", {"ids": ["{busy}"]}),
    ("post", "discover/feed", {"action": "refresh", "request_id": "one"}),
    ("post", "discover/feed", {"action": "refresh", "request_id": "one"}),
    ("post", "discover/feed", {"action": "load_more"}),
    ("patch", "users/me", {"bio": "more"}),
    ("patch", "items/{own}", {"content": {"text": "edited @user3"}, "visibility": "followers"}),
    ("patch", "items/{own}", {"visibility": "public"}),
    ("delete", "items/{own}", None),
    ("post", "live/sessions", {"title": "soon", "starts_at": f"{SOON}:00Z"}),
    ("patch", "live/sessions/{made}", {"title": "sooner"}),
    ("post", "live/sessions/{made}/start", None),
    ("post", "live/sessions/{made}/end", None),
    ("delete", "me/history", None),
]
FORMS: list[tuple[str, dict[str, Any]]] = [
    ("/settings/filters", {"phrase": "made", "action": "warn", "lasts": "0"}),
    ("/settings/filters/{filter}", {"phrase": "changed", "action": "warn", "lasts": "7"}),
    ("/settings/filters/{filter}/delete", {}),
    ("/items/{quote}/revoke-quote", {}),
    ("/items/{poll}/vote", {}),
    ("/items/{mine}/pin", {}),
    ("/items/{mine}/unpin", {}),
    *[(f"/tags/quiet8/{verb}", {}) for verb in ("unfollow", "follow")],
    ("/lists", {"title": "made"}),
    ("/lists/{list}/edit", {"title": "changed"}),
    ("/@user1/lists", {"lists": ["{list}"]}),
    ("/lists/{list}/remove", {"username": "user1"}),
    ("/lists/{list}/add", {"username": "user1"}),
    ("/lists/{spare}/delete", {}),
    ("/position", {"item_id": "{middle}"}),
    ("/position", {"forget": "1"}),
    *[
        (f"/items/{{other}}/{verb}", {})
        for verb in (
            "like",
            "unlike",
            "bookmark",
            "remove-bookmark",
            "mute",
            "unmute",
            "repost",
            "undo-repost",
            "not-interested",
            "interested",
        )
    ],
    *[(f"/history/{verb}", {}) for verb in ("pause", "resume", "clear")],
    *[(f"/@user700/{verb}", {}) for verb in ("follow", "unfollow", "mute", "unmute", "block", "unblock")],
    *[(f"/@user701/{verb}", {}) for verb in ("show-reposts", "hide-reposts")],
    ("/@user705/accept", {}),
    ("/conversations/new", {"people": "user1, user2", "text": "hello", "visibility": "mentioned", "message": "1"}),
    *[(f"/conversations/{{talk}}/{verb}", {}) for verb in ("accept", "remove")],
    ("/@user706/reject", {}),
    ("/@user708/remove", {}),
    ("/@user709/note", {"text": "a colleague"}),
    ("/@user709/mute-for", {"lasts": "24", "notifications": "on"}),
    ("/language", {"language": "en"}),
    ("/announcement/dismiss", {}),
    ("/suggestions/dismiss", {}),
    *[(f"/items/{{chained}}/{verb}", {}) for verb in ("hide", "unhide")],
    ("/items/new", {"text": "a page's post", "visibility": "public"}),
    ("/items/new", {"text": "a page's later post", "visibility": "public", "publish_at": SOON}),
    ("/scheduled/{planned}/delete", {}),
    ("/live/new", {"title": "later", "starts_at": SOON, "minutes": "60"}),
]


# --- Mastodon's client API: {person} is a user, {star} the one with most of everything --------------------------
CLIENT_READS = [
    "v1/timelines/home?max_id={middle}",
    "v1/timelines/home?min_id={middle}",
    "v1/timelines/public?min_id={middle}",
    "v1/timelines/tag/busy?any[]=rare&all[]=busy&none[]=other",
    "v1/bookmarks?min_id=1",
    "v1/favourites?min_id=1",
    "v1/timelines/tag/busy?any[]=rare&none[]=other&min_id={middle}",
    "v1/blocks?min_id=1",
    "v1/mutes?min_id=1",
    "v1/accounts/{star}/followers?min_id=1",
    "v1/accounts/{star}/following?min_id=1",
    "v1/follow_requests?min_id=1",
    "v1/accounts/{star}/statuses?tagged=busy&min_id={middle}",
    "v1/statuses/{busy}/reblogged_by?min_id=1",
    "v1/statuses/{busy}/favourited_by?min_id=1",
    "v1/timelines/tag/busy?min_id={middle}",
    "v1/timelines/list/{list}?min_id={middle}",
    "v1/statuses?id[]={busy}",
    "v1/statuses/{reply}/context",
    "v1/statuses/{busy}/quotes?min_id={middle}",
    "v1/statuses/{quote}",
    "v1/statuses/{own}/source",
    "v1/accounts?id[]={person}",
    "v1/accounts/relationships?id[]={person}&id[]={star}",
    "v1/accounts/lookup?acct=star",
    "v1/accounts/search?q=user",
    "v1/accounts/{star}/statuses?min_id={middle}",
    "v1/accounts/{star}/statuses?only_media=1&min_id={middle}",
    "v1/accounts/{star}/statuses?exclude_replies=1&min_id={middle}",
    "v1/accounts/{star}/statuses?pinned=1",
    "v1/accounts/{star}/statuses?tagged=busy",
    "v1/accounts/{person}/lists",
    "v1/notifications?limit=80",
    "v1/notifications?min_id=1",
    "v1/notifications?types[]=mention",
    "v1/notifications?types[]=mention&min_id=1",
    "v1/markers?timeline[]=home",
    "v1/followed_tags?min_id=1",
    "v1/conversations?min_id={middle}",
    "v1/conversations?max_id={middle}",
    "v1/notifications/requests/{request}",
    "v2/search?q=word3",
    "v2/search?q=%23busy",
    "v2/notifications?min_id=1",
]
ACCOUNT_ACTS = ("follow", "unfollow", "mute", "unmute", "block", "unblock", "remove_from_followers")
STATUS_ACTS = ("mute", "unmute", "favourite", "unfavourite", "bookmark", "unbookmark", "reblog", "unreblog")
CLIENT_WRITES: list[tuple[str, str, Any]] = [
    ("post", "v1/statuses", {"status": "later", "scheduled_at": f"{SOON}:00Z"}),
    ("put", "v1/scheduled_statuses/{planned}", {"scheduled_at": f"{SOON}:00Z"}),
    ("delete", "v1/scheduled_statuses/{planned}", None),
    *[("post", f"v1/accounts/{{person}}/{act}", {}) for act in ACCOUNT_ACTS],
    *[("post", f"v1/statuses/{{other}}/{act}", {}) for act in STATUS_ACTS],
    *[("post", f"v1/tags/quiet9/{act}", {}) for act in ("unfollow", "follow")],
    ("patch", "v1/accounts/update_credentials", {"display_name": "A name", "source": {"language": "en"}}),
    ("post", "v1/accounts/{person}/note", {"comment": "a colleague"}),
    ("post", "v1/accounts/{person}/note", {}),
    *[("delete", f"v1/profile/{picture}", None) for picture in ("avatar", "header")],
    ("patch", "v2/notifications/policy", {"for_private_mentions": "filter"}),
    ("put", "v1/notifications/policy", {"filter_private_mentions": True}),
    *[("post", f"v1/notifications/requests/{verb}", {"id": []}) for verb in ("accept", "dismiss")],
    ("post", "v1/notifications/requests/{request}/accept", {}),
    ("post", "v1/notifications/requests/{another_request}/dismiss", {}),
    ("put", "v1/statuses/{own}", {"status": "changed words"}),
    ("post", "v1/polls/{other_poll}/votes", {"choices": [0]}),
    ("put", "v1/statuses/{own}/interaction_policy", {"quote_approval_policy": "followers"}),
    ("post", "v1/statuses/{quoted}/quotes/{quote}/revoke", {}),
    ("post", "v1/statuses/{own}/pin", {}),
    ("post", "v1/statuses/{own}/unpin", {}),
    ("post", "v1/push/subscription", {"subscription": DEVICE, "data": {"alerts": {"mention": True}}}),
    ("put", "v1/push/subscription", {"data": {"alerts": {"mention": True, "follow": True}}}),
    ("get", "v1/push/subscription", None),
    ("delete", "v1/push/subscription", None),
    ("post", "v1/markers", {"home": {"last_read_id": "{middle}"}, "notifications": {"last_read_id": "{middle}"}}),
    ("post", "v1/statuses", {"status": "an answer @star @reader", "visibility": "direct", "in_reply_to_id": "{talk}"}),
    ("post", "v1/conversations/{talk}/read", {}),
    ("delete", "v1/conversations/{talk}", None),
    ("put", "v1/lists/{list}", {"title": "Renamed"}),
    ("put", "v1/filters/{filter}", {"phrase": "other"}),
    ("put", "v2/filters/{filter}", {"filter_action": "warn"}),
    ("put", "v2/filters/keywords/{filter}", {"keyword": "another"}),
]


class Scenario:
    def __init__(self, site: Grown, recorder: Recorder) -> None:
        self.site = site
        self.recorder = recorder
        self.queue: list[tuple[str, tuple[Any, ...]]] = []
        self.ran: set[str] = set()
        self.asked: set[str] = set()
        self.commands: set[str] = set()
        self.refused: list[str] = []
        self.names: dict[str, Any] = {}

    def send_task(self, name: str, args: Any = (), *more: Any, **options: Any) -> bool:
        """Replaces the broker."""
        self.queue.append((name, tuple(args)))
        return True

    def work(self) -> None:
        """Run what is queued, and what that queues."""
        for _ in range(DRAIN):
            if not self.queue:
                return
            name, args = self.queue.pop(0)
            self.task(name, *args)
        raise AssertionError(f"the queue does not empty: {Counter(name for name, _ in self.queue)}")

    def task(self, name: str, *args: Any) -> None:
        self.ran.add(name)
        self.recorder.step = f"task {name}"
        celery.app.tasks[name].run(*args)

    def command(self, name: str, *args: str) -> None:
        self.commands.add(name)
        self.recorder.step = f"command {name}"
        call_command(name, *args)

    def read(self, client: Any, who: str, patterns: Iterable[tuple[str, URLPattern]]) -> None:
        """Ask for the address of each route. 4xx means that the scenario asks for it otherwise."""
        for path in addresses(patterns):
            self.ask(client, who, "get", path, is_tried=True)

    def ask(
        self, client: Any, who: str, method: str, path: str, data: Any = None, form: str = "", *, is_tried: bool = False
    ) -> Any:
        path, data = filled(path, self.names), filled(data, self.names)
        self.recorder.step = f"{who}: {method.upper()} {path}"
        options = {"format": form or "json"} if isinstance(client, APIClient) and data else {}
        response = getattr(client, method)(path, data, **options)
        if response.status_code < 400:
            self.asked.add(resolve(path.split("?")[0]).route)
        elif not is_tried or response.status_code == 500:
            self.refused.append(f"{response.status_code} {self.recorder.step} {response.content[:300]}")
        if response.streaming:
            list(response.streaming_content)
        response.close()
        return response


def addresses(patterns: Iterable[tuple[str, URLPattern]]) -> Iterator[str]:
    """The addresses of routes for reading, and of a further page where the view names `pages_of`."""
    values = defaultdict(lambda: "{middle}", BUSY)
    for prefix, pattern in patterns:
        view = getattr(pattern.callback, "cls", None)
        if (view is None or hasattr(view, "get")) and not str(pattern.pattern).startswith("^api/"):
            path = address_of(pattern, values, prefix)
            yield path
            if getattr(view, "pages_of", None):
                yield f"{path}?last_id={{middle}}"


def filled(value: Any, names: dict[str, Any]) -> Any:
    """Fill in the site's ids."""
    if isinstance(value, str):
        return value.format(**names)
    if isinstance(value, list):
        return [filled(each, names) for each in value]
    if isinstance(value, dict):
        return {key: filled(each, names) for key, each in value.items()}
    return value


def play(scenario: Scenario) -> None:
    site = scenario.site
    posts = Item.objects.public_posts()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {site.ids(0)} FROM (SELECT 3000 AS g) one")
        row: Any = cursor.fetchone()
    scenario.names = {
        "busy": site.busy.pk,
        "talk": site.talk.pk,
        "middle": row[0],
        "reply": Item.objects.filter(root=site.busy).latest("pk").pk,
        "other": posts.filter(sender_id=site.first + 300).latest("pk").pk,
        "session": site.session.pk,
        "star": site.star.pk,
    }
    about.site_copy.set(about.Site(members_invite=True, shows_figures=True))
    for who, user in (("reader", site.reader), ("star", site.star)):
        scenario.names |= {name: site.polled(timedelta(days=1)).pk for name in ("poll", "other_poll")}
        page, api = Client(), APIClient()
        page.force_login(user)
        api.credentials(HTTP_AUTHORIZATION=f"Token {accounts.issue_token(user=user)}")
        used(scenario, who, page, api, posts, user)
    returning(scenario)
    tagged(scenario)
    host(scenario)
    strangers(scenario)
    joining(scenario)
    newcomer(scenario)
    safety(scenario)
    told(scenario)
    workers(scenario)
    staff(scenario)
    big_v.make_big_v(user=User.objects.get(username="user700"))
    for command in (
        ["timeline_check", "star"],
        ["account", "first-admin", "--if-wanted"],
        ["explain_home", "star", "--item", str(scenario.site.busy.pk)],
    ):
        scenario.command(*command)


def used(scenario: Scenario, who: str, page: Client, api: APIClient, posts: Any, user: User) -> None:
    made = scenario.ask(api, who, "post", "/api/v1/items", {"content": {"text": "one's own"}})
    first, *_, last = List.objects.filter(owner=user, is_exclusive=False).order_by("pk").values_list("pk", flat=True)
    scenario.names |= {"own": made.json()["id"], "me": user.pk, "list": first, "spare": last}
    *_, spare, latest = Filter.objects.filter(owner=user).order_by("pk").values_list("pk", flat=True)
    scenario.names |= {"filter": latest, "spare_filter": spare} | planned_posts(user)
    under = scenario.ask(api, who, "post", "/api/v1/items", {"content": {"text": "more"}, "reply_to": "{own}"})
    scenario.names["under_own"] = under.json()["id"]
    posts = [{"content": MANY_NAMES}, {"content": {"text": "and so on"}}]
    chain = scenario.ask(api, who, "post", "/api/v1/threads", {"items": posts})
    scenario.names["chain"], scenario.names["chained"] = (item["id"] for item in chain.json()["items"])
    kept = scenario.ask(api, who, "post", "/api/v1/items", {"content": {"text": "one's own, too"}})
    scenario.names["mine"] = scenario.names["quoted"] = kept.json()["id"]
    content = {"content": {"text": "about one's own"}, "quote_of": "{quoted}"}
    scenario.names["quote"] = scenario.ask(api, who, "post", "/api/v1/items", content).json()["id"]
    scenario.work()
    scenario.read(page, who, OF_PAGES)
    for path in PAGES:
        scenario.ask(page, who, "get", path)
    scenario.read(api, who, OF_API)
    for path in ADDRESSES:
        scenario.ask(api, who, "get", f"/api/v1/{path}")
    scenario.work()
    for path in AGAIN:  # from windows
        scenario.ask(api, f"{who} again", "get", f"/api/v1/{path}")
    for method, path, body in WRITES:
        response = scenario.ask(api, who, method, f"/api/v1/{path}", body)
        if path in ("live/sessions", "me/lists"):
            scenario.names["made"] = response.json()["id"]
    scenario.work()
    for path, form in FORMS:
        scenario.ask(page, who, "post", path, form)
    planned = LiveSession.objects.filter(host=user, title="later").latest("pk")
    scenario.ask(page, who, "get", f"/live/{planned.pk}/edit")
    scenario.ask(page, who, "post", f"/live/{planned.pk}/cancel")
    pictures(scenario, who, api)
    clients(scenario, who, page, user)
    for kind in ("follows", "mutes", "blocks", "lists", "hashtags"):
        rows = b"Close,user1\nNew,user2\nNew,absent\n" if kind == "lists" else b"user710\nuser711\nabsent\n"
        listed = SimpleUploadedFile("list.csv", rows)
        scenario.ask(page, who, "post", "/settings/import-export", {"kind": kind, "file": listed})
        scenario.work()
    posts = files_of([note(1), note(2, inReplyTo=address(1)), boost(3)], actor_json=actor(name="A name"))
    marks = [address(1), address(9), f"{settings.SITE_URL}/items/{scenario.names['own']}"]
    posts |= {f"{kind}.json": collection(kind, marks) for kind in ("featured", "likes", "bookmarks")}
    for kind in ("following_accounts", "blocked_accounts", "muted_accounts", "lists"):
        posts[f"{kind}.csv"] = b"Close,user1\nNew,absent\n" if kind == "lists" else b"user712\nabsent\n"
    for _time in range(2):
        packed = SimpleUploadedFile("archive.zip", zipped(posts).read())
        form = {"file": packed, "audience": "kept", "profile": "on"}
        scenario.ask(page, who, "post", "/settings/import-archive", form)
        scenario.work()
    brought = ArchiveImport.objects.filter(user=user).latest("pk").pk
    scenario.ask(page, who, "post", f"/settings/import-archive/{brought}/stop")
    scenario.ask(page, who, "get", "/settings/import-archive")
    refused = CsvImport.objects.filter(user=user).latest("pk").pk
    scenario.ask(page, who, "get", f"/settings/import/{refused}/not-done.csv")
    scenario.recorder.step = f"{who}: calls"
    follower_count(user)
    recounting.begin(user.pk)
    history.recommendation_reason(user, scenario.names["other"])
    with patch.multiple(search, WALK=50, INDEXED=0):
        search.search_items(parse('"word3 word3 word3"'), user, last_id=None, limit=20)
    scenario.work()


def planned_posts(user: User) -> dict[str, int]:
    first, second = scheduling.scheduled_of(user)[:2]
    return {"scheduled": first.pk, "planned": second.pk}


def clients(scenario: Scenario, who: str, page: Client, user: User) -> None:
    """All calls of a Mastodon app, from registration to the end of its token."""
    asked = {"client_name": "An app", "redirect_uris": OUT_OF_BAND, "scopes": SCOPES}
    app = scenario.ask(APIClient(), who, "post", "/api/v1/apps", asked).json()
    query = {"client_id": app["client_id"], "redirect_uri": OUT_OF_BAND, "response_type": "code", "scope": SCOPES}
    for name in ("oauth-authorize", "oauth-authorize-slash"):
        scenario.ask(page, who, "get", reverse(name, query=query))
    shown = scenario.ask(page, who, "post", reverse("oauth-authorize", query=query), {"answer": "allow"})
    code = shown.content.decode().partition("<code>")[2].partition("</code>")[0]
    proof = {"client_id": app["client_id"], "client_secret": app["client_secret"]}
    wanted = proof | {"grant_type": "authorization_code", "code": code, "redirect_uri": OUT_OF_BAND}
    token = scenario.ask(APIClient(), who, "post", "/oauth/token", wanted).json()["access_token"]
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    made = scenario.ask(api, who, "post", "/api/v1/statuses", {"status": "an app's words #busy @star"}).json()
    scenario.names |= {"own": made["id"], "person": scenario.site.first + 711}
    scenario.names["filter"] = Filter.objects.filter(owner=user).latest("pk").pk
    scenario.names |= planned_posts(user)
    scenario.names |= requests_of(user, scenario.site)
    scenario.read(api, f"{who}'s app", client_patterns)
    for path in CLIENT_READS:
        scenario.ask(api, f"{who}'s app", "get", f"/api/{path}")
    about.site_copy.set(about.Site(members_invite=True, announcement="We move"))
    (news,) = scenario.ask(api, f"{who}'s app", "get", "/api/v1/announcements").json()
    scenario.ask(api, f"{who}'s app", "post", f"/api/v1/announcements/{news['id']}/dismiss")
    about.site_copy.set(about.Site(members_invite=True))
    for path in ("/.well-known/nodeinfo", "/nodeinfo/2.0"):
        scenario.ask(APIClient(), who, "get", path)
    client_media(scenario, who, api)
    scenario.recorder.is_silent = True
    AccessToken.objects.filter(user=user).update(updated=timezone.now() - timedelta(days=1))
    like(user=scenario.site.star, item=Item.objects.get(pk=made["id"]))
    scenario.recorder.is_silent = False
    for method, path, body in CLIENT_WRITES:
        scenario.ask(api, f"{who}'s app", method, f"/api/{path}", body)
    notice, *_ = scenario.ask(api, f"{who}'s app", "get", "/api/v1/notifications").json()
    for end in (f"{notice['id']}/dismiss", "clear"):
        scenario.ask(api, f"{who}'s app", "post", f"/api/v1/notifications/{end}")
    scenario.ask(page, who, "get", "/settings/devices")
    scenario.ask(APIClient(), who, "post", "/oauth/revoke", proof | {"token": token})
    scenario.work()


def requests_of(user: User, site: Grown) -> dict[str, Any]:
    """Two requests by people whom nobody blocks."""
    waiting = Participant.objects.filter(user=user, is_request=True, conversation__sender__lt=site.first + FOLLOWEES)
    return dict(zip(("request", "another_request"), waiting.values_list("conversation", flat=True)[:2], strict=True))


def client_media(scenario: Scenario, who: str, api: APIClient) -> None:
    for version in ("v1", "v2"):
        sent = {"file": upload(jpeg()), "description": "a picture"}
        medium = scenario.ask(api, f"{who}'s app", "post", f"/api/{version}/media", sent, "multipart").json()["id"]
        scenario.ask(api, f"{who}'s app", "get", f"/api/v1/media/{medium}")
        scenario.ask(api, f"{who}'s app", "put", f"/api/v1/media/{medium}", {"description": "another"})
    other = Item.objects.get(pk=scenario.names["other"])
    report = {"account_id": str(other.sender_id), "status_ids": [str(other.pk)], "category": "spam"}
    for path in ("reports", "reports/"):
        scenario.ask(api, f"{who}'s app", "post", f"/api/v1/{path}", report)


def pictures(scenario: Scenario, who: str, api: APIClient) -> None:
    sent = {"file": upload(jpeg()), "description": "a picture"}
    made = scenario.ask(api, who, "post", "/api/v1/me/media", sent, form="multipart")
    scenario.names["media"] = made.json()["id"]
    scenario.ask(api, who, "get", "/api/v1/me/media/{media}")
    scenario.ask(api, who, "patch", "/api/v1/me/media/{media}", {"description": "more", "focus": "0,0"})
    scenario.ask(api, who, "delete", "/api/v1/me/media/{media}")
    film = scenario.ask(api, who, "post", "/api/v1/me/media", {"file": upload(mp4())}, form="multipart").json()["id"]
    for _ in range(2):
        words = {"file": upload(b"WEBVTT\n\n00:01.000 --> 00:02.000\nwords", "a.vtt", "text/vtt")}
        scenario.ask(api, who, "put", f"/api/v1/me/media/{film}/captions", words, form="multipart")
    scenario.ask(api, who, "delete", f"/api/v1/me/media/{film}/captions")
    scenario.ask(api, who, "post", "/api/v1/items", {"type": "video", "content": {"media": [film]}})
    scenario.work()
    for face in ("avatar", "banner"):
        for _ in range(2):
            sent = {"file": upload(jpeg())}
            scenario.ask(api, who, "put", f"/api/v1/users/me/{face}", sent, form="multipart")
        scenario.ask(api, who, "delete", f"/api/v1/users/me/{face}")
    sends = [{"file": upload(jpeg())} for _ in range(2)]
    ids = [scenario.ask(api, who, "post", "/api/v1/me/media", one, form="multipart").json()["id"] for one in sends]
    made = ids[0]
    item = scenario.ask(api, who, "post", "/api/v1/items", {"type": "image", "content": {"media": ids}}).json()["id"]
    scenario.ask(api, who, "patch", f"/api/v1/me/media/{made}", {"description": "more"})
    scenario.ask(api, who, "patch", f"/api/v1/items/{item}", {"content": {"text": "more", "media": ids[::-1]}})
    scenario.ask(api, who, "delete", f"/api/v1/items/{item}")
    covers(scenario, who, api)


def covers(scenario: Scenario, who: str, api: APIClient) -> None:
    sends = [{"file": upload(jpeg())} for _ in range(3)]
    ids = [scenario.ask(api, who, "post", "/api/v1/me/media", one, form="multipart").json()["id"] for one in sends]
    plan = {"title": "covered", "starts_at": f"{SOON}:00Z", "cover": ids[0]}
    session = scenario.ask(api, who, "post", "/api/v1/live/sessions", plan).json()["id"]
    scenario.ask(api, who, "patch", f"/api/v1/me/media/{ids[0]}", {"description": "more"})
    for cover in (ids[1], None, ids[2]):
        scenario.ask(api, who, "patch", f"/api/v1/live/sessions/{session}", {"cover": cover})
    scenario.ask(api, who, "delete", f"/api/v1/live/sessions/{session}")


def returning(scenario: Scenario) -> None:
    api, rows = APIClient(), User.objects.filter(pk=scenario.site.reader.pk)
    api.credentials(HTTP_AUTHORIZATION=f"Token {accounts.issue_token(user=scenario.site.reader)}")
    rows.update(level=2, last_seen_at=timezone.now() - timedelta(days=3), push_generation=F("push_generation") + 1)
    scenario.ask(api, "returning", "get", "/api/v1/timeline/home")
    scenario.work()
    rows.update(push_generation=F("push_generation") + 1)
    scenario.ask(api, "returning", "get", "/api/v1/timeline/home")
    scenario.work()


def tagged(scenario: Scenario) -> None:
    """Home is read from windows, and beyond them."""
    user = scenario.site.ordinary
    User.objects.filter(pk=user.pk).update(level=3, last_seen_at=timezone.now())
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Token {accounts.issue_token(user=user)}")
    changed = Item.objects.public_posts().filter(sender_id=scenario.site.first + 500).latest("pk")
    edit(item=changed, content={"text": "changed #quiet3"})
    for _ in range(3):
        for path in AGAIN[:3]:
            scenario.ask(api, "tagged", "get", f"/api/v1/{path}")
        for limit in (1, 40):
            scenario.ask(api, "tagged", "get", f"/api/v1/timeline/home?limit={limit}")
        scenario.work()
    page = Client()
    page.force_login(user)
    for path in ("/?late=1", "/new?since_id={middle}&at=1", "/lists"):
        scenario.ask(page, "tagged", "get", path)
    scenario.recorder.step = "tagged: calls"
    busy = Scope(user.pk, has_tags=True)
    fetch_items(busy, [scenario.site.busy.pk])
    own = Item.objects.get(sender=user, repost_of=scenario.site.busy)  # shown, so that its neighbours are read
    folds_and_originals(busy, last_id=scenario.names["middle"], count=20, reposts=[own.pk])
    for source in (scenario.site.star.pk, -1):
        outbox.pull(source, 1_000)
        outbox.epoch_of(source)


def host(scenario: Scenario) -> None:
    """A session starts while many wait."""
    reader, star = APIClient(), APIClient()
    reader.credentials(HTTP_AUTHORIZATION=f"Token {accounts.issue_token(user=scenario.site.reader)}")
    star.credentials(HTTP_AUTHORIZATION=f"Token {accounts.issue_token(user=scenario.site.star)}")
    page = Client()
    page.force_login(scenario.site.reader)
    scenario.ask(reader, "reader", "post", "/api/v1/live/sessions/{session}/report", {"reason": "spam"})
    scenario.ask(page, "reader", "get", "/live/{session}/report")
    scenario.ask(page, "reader", "post", "/live/{session}/report", {"reason": "spam"})
    for method in ("put", "delete", "put"):
        scenario.ask(reader, "reader", method, "/api/v1/live/sessions/{session}/reminder")
    for verb in ("forget", "remind"):
        scenario.ask(page, "reader", "post", f"/live/{{session}}/{verb}")
    for verb in ("start", "end"):
        scenario.ask(star, "star", "post", f"/api/v1/live/sessions/{{session}}/{verb}")
        scenario.work()
    scenario.ask(reader, "reader", "get", "/api/v1/me/notifications")


def strangers(scenario: Scenario) -> None:
    page, api = Client(), APIClient()
    scenario.read(page, "anonymous", OF_PAGES)
    for path in ("/search?q=word3", "/@reader"):
        scenario.ask(page, "anonymous", "get", path)
    for _ in range(3):  # the third answer is a cached page, verified
        scenario.ask(page, "anonymous", "get", "/items/{busy}")
    scenario.ask(Client(headers={"HX-Request": "true"}), "anonymous", "get", "/items/{reply}?in_thread")
    scenario.read(api, "anonymous", OF_API)
    scenario.ask(api, "anonymous", "get", "/api/v1/search?q=word3")


def joining(scenario: Scenario) -> None:
    """Some join by invitation, some apply and an admin decides."""
    member, page, api = Client(), Client(), APIClient()
    member.force_login(scenario.site.reader)
    scenario.ask(
        member,
        "reader",
        "post",
        "/settings/invitations",
        {"most_uses": "2", "days": "7", "email": "friend@example.org"},
    )
    row = Invitation.objects.filter(made_by=scenario.site.reader).latest("pk")
    scenario.ask(page, "invited", "get", f"/invite/{row.code}")
    scenario.ask(page, "invited", "post", "/signup", {"username": "invited", "password": PASSWORD, "invite": row.code})
    scenario.ask(member, "reader", "post", f"/settings/invitations/{row.pk}/revoke")
    about.site_copy.set(about.Site(chosen_sign_up=SignUp.APPROVAL))
    fields = {"password": PASSWORD, "email": "applicant@example.org", "reason": "I read a lot."}
    for name in ("applicant", "refused"):
        scenario.ask(api, name, "post", "/api/v1/users", fields | {"username": name})
    about.site_copy.set(about.Site(members_invite=True))
    scenario.recorder.step = "applications"
    applications.is_waiting("applicant", PASSWORD)
    applications.approve(application_id=Application.objects.named("applicant").get().pk)
    applications.reject(application_id=Application.objects.named("refused").get().pk)
    scenario.recorder.step = "site"
    about.read()
    about_actions.change_settings(name="Reading room")
    about_actions.store_counts(users=1, active=1, items=1)
    about_actions.withdraw_rule(rule_id=about_actions.save_rule(rule=Rule(number=1, text="Be kind.")).pk)
    scenario.work()


def newcomer(scenario: Scenario) -> None:
    page, api = Client(), APIClient()
    name = {"username": "newcomer", "password": PASSWORD}
    scenario.ask(api, "newcomer", "post", "/api/v1/users", name)
    token = scenario.ask(api, "newcomer", "post", "/api/v1/auth/token", name).json()["token"]
    api.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    scenario.ask(page, "newcomer", "post", "/login", name)
    for path in ("/", "/", "/discover", "/live"):  # of "/" also what the cache proposes
        scenario.ask(page, "newcomer", "get", path)
    scenario.ask(api, "newcomer", "post", "/api/v1/discover/feed", {"action": "refresh"})
    scenario.ask(page, "newcomer", "post", "/settings/log-out-everywhere")
    scenario.ask(page, "newcomer", "post", "/logout")
    user = User.objects.get(username="newcomer")
    api.credentials(HTTP_AUTHORIZATION=f"Token {accounts.issue_token(user=user)}")
    change = {"current_password": PASSWORD, "new_password": f"{PASSWORD} anew"}
    scenario.ask(api, "newcomer", "post", "/api/v1/users/me/password", change)
    for method, path, body in (
        ("delete", "sessions", None),
        ("post", "delete", {"password": change["new_password"]}),
    ):
        user.refresh_from_db()
        api.credentials(HTTP_AUTHORIZATION=f"Token {accounts.issue_token(user=user)}")
        scenario.ask(api, "newcomer", method, f"/api/v1/users/me/{path}", body)
    scenario.work()


def safety(scenario: Scenario) -> None:
    user = User.objects.get(username="user17")
    page, stranger, api = Client(), Client(), APIClient()
    name = {"username": "user17", "password": PASSWORD}
    Authenticator.objects.filter(user=user).delete()
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    scenario.ask(page, "careful", "post", "/login", name)
    scenario.ask(page, "careful", "post", "/settings/email", {"email": "careful@example.org"})
    scenario.ask(page, "careful", "post", "/settings/email/again")
    link = urlsplit(Letter.objects.filter(kind="verify_address").latest("pk").context["link"]).path
    scenario.ask(stranger, "careful", "get", link)
    scenario.ask(stranger, "careful", "post", link)
    scenario.ask(page, "careful", "post", "/settings/email", {"email": "more@example.org"})
    code = Letter.objects.filter(kind="verify_address").latest("pk").context["code"]
    scenario.ask(page, "careful", "post", "/settings/email/code", {"code": code})
    scenario.ask(page, "careful", "get", "/settings/factors/app")
    step = int(time.time()) // 30
    first = pyotp.TOTP(page.session["app_secret"]).generate_otp(step)
    scenario.ask(page, "careful", "post", "/settings/factors/app", {"code": first})
    scenario.ask(page, "careful", "get", "/settings/factors/recovery-codes")
    scenario.ask(page, "careful", "post", "/settings/factors/recovery-codes")
    codes = second_factors.recovery_codes(user)
    scenario.ask(page, "careful", "post", "/settings/confirm", {"password": PASSWORD, "code": codes[0]})
    for at in ("/settings/confirm/passkey", "/settings/factors/passkey", "/login/passkey"):
        scenario.ask(page, "careful", "post", f"{at}/options")
    scenario.ask(page, "careful", "post", "/settings/confirm/passkey", {"answer": "{{}}"})
    scenario.ask(stranger, "careful", "post", "/login", name)
    scenario.ask(stranger, "careful", "get", "/login/code")
    scenario.ask(stranger, "careful", "post", "/login/passkey", {"answer": "{{}}"})
    scenario.ask(stranger, "careful", "post", "/login/code", {"code": codes[1]})
    scenario.ask(
        api, "careful", "post", "/api/v1/auth/token", name | {"username": "more@example.org", "code": codes[2]}
    )
    for place in [*places.sessions(user, page.session.session_key), *places.tokens(user)]:
        if not place.is_here:
            scenario.ask(page, "careful", "post", "/settings/devices/end", {"key": place.key})
    row = next(row for row in second_factors.authenticators_of(user) if row.type == "totp")
    scenario.ask(page, "careful", "post", "/settings/factors/remove", {"id": str(row.pk)})
    scenario.ask(api, "careful", "post", "/api/v1/auth/password-reset", {"username_or_email": "user17"})
    scenario.ask(Client(), "careful", "post", "/password-reset", {"username_or_email": "more@example.org"})
    scenario.work()
    link = urlsplit(recovery.reset_link(User.objects.get(pk=user.pk))).path
    scenario.ask(Client(), "careful", "get", link)
    scenario.ask(page, "careful", "post", "/settings/email/remove")
    scenario.ask(
        Client(),
        "careful",
        "post",
        urlsplit(recovery.reset_link(User.objects.get(pk=user.pk))).path,
        {"new": f"{PASSWORD} 2"},
    )


def told(scenario: Scenario) -> None:
    site = scenario.site
    scenario.recorder.step = "stream"
    readers = [*range(site.first, site.first + READERS), site.star.pk, site.reader.pk]
    listeners = [
        Listener(reader=reader, item=scenario.names["busy"] if reader % 2 else None, session=site.session.pk)
        for reader in readers
    ]
    posts = Item.objects.published().filter(sender__gte=site.first, reply_to=None).exclude(visibility="mentioned")
    latest = posts.order_by("-pk").values_list("pk", flat=True)
    Item.objects.filter(pk__in=list(latest[:2])).update(quotable_by="followers", repliable_by="followers")
    events = [Published(item) for item in latest[:EVENTS]]
    events += [Edited(latest[0], "public"), Withdrawn(latest[1], "public"), SessionChanged(site.session.pk, False)]
    entries = [(Position(1, place), event) for place, event in enumerate(events)]
    stream.news_for(listeners, entries)
    listed = List.objects.filter(owner=site.reader.pk).order_by("pk").values_list("pk", flat=True)[0]
    streams = (
        Stream(("user",), has_home=True, has_notifications=True),
        Stream(("public",), is_public=True),
        Stream(("hashtag", "busy"), tag="busy"),
        Stream(("direct",), has_conversations=True),
    )
    hearers = [ClientHearer(reader, streams, is_socket=False) for reader in readers]
    hearers.append(ClientHearer(site.reader.pk, (Stream(("list", str(listed)), list_id=listed),), is_socket=True))
    private = Item.objects.published().filter(visibility="mentioned").order_by("-pk").values_list("pk", flat=True)
    personal = [Notified(site.reader.pk, {}), FiltersChanged(site.reader.pk)]
    streaming.messages_for(hearers, [*entries, *((Position(2, place), event) for place, event in enumerate(personal))])
    streaming.messages_for(hearers, [(Position(3, place), Published(item)) for place, item in enumerate(private[:5])])
    (reply,) = hydrate(
        Item.objects.exclude(reply_to=None).order_by("-pk").values_list("pk", flat=True)[:1], site.reader
    )
    pairs = [(int(reply.id), reader) for reader in readers]
    streaming._hidden(pairs, {int(reply.id): {"star": str(site.star.pk)}})
    streaming._visible_replied_to(pairs, {int(reply.id): reply})
    FilterCache().load_missing(dict.fromkeys(readers, 1))


def workers(scenario: Scenario) -> None:
    site = scenario.site
    scenario.recorder.step = "task parts"
    with patch.object(postgres, "ENOUGH", postgres.ENOUGH * 1_000):  # else words are searched for few readers
        for reader in (site.reader, site.star):
            postgres.PostgresRecall().candidates(reader, count=500, now=timezone.now())
    active_fans.build(site.star.pk)
    indexing.enqueue_changes([site.busy.pk])
    indexing.enqueue_changes([site.busy.pk], only_public=True)
    scenario.ran.add("timeline.build_active_fans")
    for task, query in QUESTIONS.items():
        scenario.recorder.step = f"question of {task}"
        quiet.has_work(query)
    scenario.recorder.step = "doctor"
    for look in (growth.tables, growth.old_rows):
        list(look())
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        scenario.task(entry["task"])
    scenario.work()
    big_v.demote(user=User.objects.get(username="user399"))
    scenario.work()
    scenario.task("live.materialise_replays", site.reader.pk, "token")
    link_cards(scenario)
    scenario.recorder.is_silent = True
    told = Act.objects.filter(recipient__in=PushSubscription.objects.values("user")).latest("pk")
    device = PushSubscription.objects.filter(user=told.recipient_id).latest("pk")
    scenario.recorder.is_silent = False
    scenario.task("notifications.push", [told.pk])
    scenario.task("notifications.push_device", device.pk)
    scenario.task("notifications.push_trial", device.pk)


def link_cards(scenario: Scenario) -> None:
    """Its page is refused by address, then the host with most cards."""
    post = ItemFactory(sender=scenario.site.ordinary, content={"text": "see http://10.0.0.1/"})
    with patch.object(settings, "LINK_CARDS", True):
        scenario.task("items.give_link_card", post.pk)
        scenario.work()
    card = LinkCard.objects.exclude(facts=None).latest("pk")
    cards.remove(card=card)
    scenario.task("items.end_polls")
    scenario.task("items.remove_refused_cards", scenario.site.refused.pk)
    scenario.queue.clear()  # the rest, in parts


def block(scenario: Scenario, page: Client, medium: int) -> None:
    address, fields = "/admin/moderation/picturerule/", {"action": "hold", "distance": "6", "note": "words"}
    scenario.ask(page, "admin", "post", f"{address}add/", fields | {"medium": str(medium), "is_enabled": "on"})
    rule = PictureRule.objects.latest("pk")
    scenario.ask(page, "admin", "get", f"{address}add/?medium={medium}")
    hashes.count_attempts(user_id=scenario.site.star.pk, rules=[rule.pk])
    scenario.ask(page, "admin", "get", f"{address}{rule.pk}/change/")
    scenario.ask(page, "admin", "post", f"{address}{rule.pk}/change/", fields)
    scenario.ask(page, "admin", "post", f"{address}{rule.pk}/delete/", {"post": "yes"})
    post = Item.objects.create(sender=scenario.site.ordinary, type="image", content={"media": [str(medium)]})
    MediaFile.objects.filter(pk=medium).update(item_id=post.pk, withdrawn_at=None)
    for verb in ("hide", "show"):
        scenario.ask(page, "admin", "post", f"/admin/moderation/case/act/?items={post.pk}", {"verb": verb})


def staff(scenario: Scenario) -> None:
    page = Client()
    page.force_login(scenario.site.admin)
    scenario.ask(page, "admin", "get", "/admin/")
    for model, shown in admin.site._registry.items():
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        for asked in ("", "?p=3", *(["?q=user77"] if shown.search_fields else [])):
            scenario.ask(page, "admin", "get", base + asked)
        if model._meta.managed and not model._meta.proxy:
            newest = model._default_manager.order_by("-pk").values_list("pk", flat=True)[0]
            scenario.ask(page, "admin", "get", f"{base}{newest}/change/")
            scenario.ask(page, "admin", "get", f"{base}{newest}/history/")
    for asked in (
        "items/item/?q=word3",
        "items/item/?q=%23busy+word3",
        "items/item/?q=%23busy+%23quiet1",
        "accounts/user/?q=user",
        "accounts/user/?o=6",
        "accounts/user/?o=-6",
        "relations/follow/?q=star",
    ):
        scenario.ask(page, "admin", "get", f"/admin/{asked}")
    medium = MediaFile.objects.filter(use="item", owner_id=scenario.site.reader.pk).latest("pk")
    for size in ("preview", "whole"):
        scenario.ask(page, "admin", "get", f"/staff/media/{medium.pk}/{size}")
    block(scenario, page, medium.pk)
    star, case = scenario.site.star.pk, Case.objects.filter(state="open", item__isnull=False).latest("pk").pk
    scenario.ask(page, "admin", "get", f"/admin/accounts/user/{star}/change/")
    scenario.ask(
        page, "admin", "get", f"/admin/accounts/user/{scenario.site.reader.pk}/home/?item={scenario.site.busy.pk}"
    )
    for verb in ("make", "demote", "allow"):
        scenario.ask(page, "admin", "post", f"/admin/accounts/user/{star}/big-v/{verb}/", {})
    scenario.ask(page, "admin", "get", f"/admin/moderation/case/{case}/change/")
    for chosen, verbs in (
        ("items={busy}", ("open", "reject")),
        (f"users={scenario.site.ordinary.pk}", ("warn", "limit", "ban", "unban")),
    ):
        for verb in verbs:
            answer = {"verb": verb, "note": "words", "text": "words"}
            scenario.ask(page, "admin", "post", f"/admin/moderation/case/act/?{chosen}", answer)
    scenario.ask(page, "admin", "get", "/admin/moderation/case/find/?items={busy}")
    scenario.ask(page, "admin", "get", "/settings")
    decide(scenario, page, case)


def decide(scenario: Scenario, page: Client, case: int) -> None:
    """A case is decided, its author and a suspended member appeal, and the admin answers."""
    seen = {"state": "open", "modified_at": timezone.now().isoformat(), "text": "Be kind."}
    scenario.ask(page, "admin", "post", f"/admin/moderation/case/{case}/change/", seen | {"verb": "limit"})
    decision = Decision.objects.filter(verb="reject").latest("pk")
    author, api = Client(), APIClient()
    author.force_login(decision.user)
    api.force_authenticate(decision.user)
    scenario.ask(author, "author", "get", f"/decisions/{decision.pk}")
    scenario.ask(author, "author", "post", f"/decisions/{decision.pk}", {"text": "No."})
    limited = Decision.objects.filter(verb="list").latest("pk")
    scenario.ask(api, "author", "post", f"/api/v1/me/decisions/{limited.pk}/appeal", {"text": "No."})
    user = User.objects.create_user("banned", password=PASSWORD)
    senders.ban(user=user, by=scenario.site.admin, until=timezone.now() + timedelta(days=1))
    stranger = Client()
    address = scenario.ask(stranger, "banned", "post", "/login", {"username": "banned", "password": PASSWORD})[
        "Location"
    ]
    scenario.ask(stranger, "banned", "get", address)
    scenario.ask(stranger, "banned", "post", address, {"text": "No."})
    scenario.ask(stranger, "banned", "post", f"{address}/data")
    for number in Appeal.objects.order_by("-pk").values_list("pk", flat=True)[:3]:
        answer = {"verb": "accept", "text": "Sorry."}
        scenario.ask(page, "admin", "post", f"/admin/moderation/appeal/{number}/change/", answer)
    other = User.objects.create_user("shortly", password=PASSWORD)
    senders.ban(user=other, by=scenario.site.admin, until=timezone.now())
    scenario.task("moderation.end_suspensions")
    scenario.work()
