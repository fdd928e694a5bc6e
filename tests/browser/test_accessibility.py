"""Every page: axe against WCAG 2.1 AA, width at 200 and 400 % zoom, and a strict Content-Security-Policy."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import pyotp
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page

from accounts import addresses
from accounts.about.actions import change_settings as describe
from accounts.about.actions import save_rule
from accounts.about.models import Rule
from accounts.actions import edit_profile
from accounts.joining import invitations
from accounts.mail.models import Letter
from accounts.models import User
from accounts.signing_in import recovery, second_factors, suspension
from discover.feedback import not_interested
from discover.recent import record as record_views
from items.actions import bookmark, hold, like, publish, reject, repost
from items.filters import filters
from items.models import Item, ScheduledPost
from items.profiles.pins import pin
from items.scheduling import schedule
from items.threads.hiding import hide_reply
from live import actions as live
from live.models import LiveSession, State
from moderation import actions as moderation
from moderation import appeals, senders
from moderation.decisions import Grounds, decisions_about
from moderation.models import Case
from moderation.reports import report
from relations import lists
from relations.actions import block, follow, mute
from relations.models import FollowRequest
from seen.models import MergeRun
from seen.played import Play
from seen.played import record as record_plays
from tests.support.addresses import page_names
from tests.support.browsers import MENU, OPENER, Visit, Visitor
from tests.support.clients import OUT_OF_BAND, app_of
from tests.support.effort import EVERYTHING, some
from tests.support.factories import PASSWORD, UserFactory, say
from tests.support.pictures import jpeg

pytestmark = pytest.mark.slow

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
OF_COLOUR = ["color-contrast", "link-in-text-block"]
"""Their results depend on the colour scheme."""
LANGUAGES = {"en": "en-US", "zh": "zh-CN", "ar": "ar", "es": "es-ES", "ja": "ja-JP"}
WIDTHS = {1280: 640, 390: 320}
"""Each width and its zoomed width: 1280 at 200 and at 400 %."""
APP_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
COVER = "https://covers.example/1.svg"
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 9"><path fill="#f60" d="M0 0h16v9H0z"/></svg>'


Scheme = Literal["light", "dark"]


class World:
    """Every page has content for some people and none for others."""

    def __init__(self) -> None:
        self.reader = UserFactory.create(username="reader", display_name="The Reader", bio="Reads. #books @writer")
        edit_profile(user=self.reader, fields=[("Site", "https://example.org/"), ("Town", "海边")])
        self.writer = UserFactory.create(
            username="writer", display_name="作者", bio="https://example.org/", is_big_v=True
        )
        self.friend = UserFactory.create(username="friend")
        self.blocked = UserFactory.create(username="blocked")
        self.newcomer = UserFactory.create(username="newcomer", is_locked=True)
        self.guard = UserFactory.create(username="asking", bio="Asks.")
        FollowRequest.objects.create(follower=self.guard, followee=self.reader)
        follow(follower=self.reader, followee=self.newcomer)
        for person in (self.writer, self.friend):
            follow(follower=self.reader, followee=person)
            follow(follower=person, followee=self.reader)
        follow(follower=self.friend, followee=self.writer)
        mute(muter=self.reader, muted=self.friend, lasts=timedelta(days=7))
        self.root = say(self.writer, "zebra, see https://example.org/ and #books, @reader\n\n第二段 #小事")
        self.long = say(self.writer, "words " * 300, repliable_by="nobody")
        say(self.writer, "for followers", visibility="followers")
        say(self.writer, "for mutuals", visibility="mutuals")
        publish(
            sender=self.writer,
            type="link",
            title="A title",
            content={"text": "zebra", "url": "https://example.org/zebra"},
        )
        self.answer = say(self.friend, "an answer with a zebra", reply_to=self.root)
        self.nested = say(self.writer, "an answer to it", reply_to=self.answer)
        self.deep = say(self.reader, "and so on", reply_to=self.nested)
        say(self.friend, "too", reply_to=self.deep)
        rude = say(self.friend, "nonsense", reply_to=self.root)
        hide_reply(user=self.writer, root_id=self.root.pk, reply_id=rude.pk)
        self.own = say(self.reader, "mine", visibility="self")
        self.talk = say(self.writer, "@reader a zebra, in private", visibility="mentioned")
        say(self.guard, "@reader hello", visibility="mentioned")
        hold(item=say(self.reader, "looked at"), reasons=["words"])
        reject(item=say(self.reader, "refused"))
        for person in (self.reader, self.friend):
            like(user=person, item=self.root)
            repost(sender=person, item=self.root)
            bookmark(user=person, item=self.root)
        repost(sender=self.writer, item=self.own_public())
        like(user=self.writer, item=self.deep)
        record_views(self.reader.pk, items=[self.long.pk, self.root.pk], now=timezone.now())
        not_interested(user=self.reader, item=self.long)
        block(blocker=self.reader, blocked=self.blocked)
        self.live = self.session(self.writer, "a zebra, live", State.LIVE, url="https://example.org/", cover_url=COVER)
        self.upcoming = self.session(self.writer, "a zebra, soon")
        self.session(self.writer, "a zebra, again", State.REPLAY, url="https://example.org/")
        self.hosted = self.session(self.reader, "my session")
        self.session(self.reader, "my last session", State.REPLAY)
        live.cancel(session=self.session(self.reader, "not to be"), now=timezone.now())
        self.admin = UserFactory.create(username="admin", is_staff=True, is_superuser=True)
        self.invitation = invitations.create(user=self.admin)
        describe(
            short_description="Books, slowly.",
            description="We read.\n\nhttps://example.org/",
            contact_email="post@example.org",
            accent="#8a2b06",
            announcement="Closed on Monday: https://example.org/",
            shows_figures=True,
        )
        self.rule = save_rule(rule=Rule(number=1, text="Be kind."))
        self.order()
        self.play()
        self.secure()
        self.judge()

    def judge(self) -> None:
        grounds = Grounds("Please be kind.", self.rule.pk)
        moderation.warn(user=self.reader, by=self.admin, grounds=grounds, about="a zebra")
        moderation.reject_by_hand(item_id=say(self.reader, "removed").pk, by=self.admin, grounds=grounds)
        self.appealed, self.decision = decisions_about(self.reader)
        self.appeal = appeals.appeal(user=self.reader, decision_id=self.appealed.pk, text="It was a joke.")
        banned = UserFactory.create(username="banned")
        senders.ban(user=banned, by=self.admin, grounds=grounds, until=timezone.now() + timedelta(days=3))
        banned.refresh_from_db()
        self.right = suspension.make_right(banned)
        report(item=self.root, reporter=self.friend, reason="spam", text="an advertisement", rule=self.rule.pk)
        self.case = Case.objects.get(item=self.root)

    def secure(self) -> None:
        addresses.add(user=self.reader, address="reader@example.org")
        addresses.prove_by_code(user=self.reader, code=Letter.objects.latest("pk").context["code"])
        addresses.add(user=self.reader, address="new.reader@example.org")
        self.address_link = urlsplit(Letter.objects.latest("pk").context["link"]).path
        now = int(time.time()) // 30
        code = pyotp.TOTP(APP_SECRET).generate_otp(now)
        second_factors.set_up_app(user=self.reader, secret=APP_SECRET, code=code)
        self.reset_link = urlsplit(recovery.reset_link(self.writer)).path

    def order(self) -> None:
        self.list = lists.create(owner=self.reader, title="Friends 朋友", is_exclusive=False)
        lists.add(owner=self.reader, list_id=self.list.pk, member=self.writer)
        self.empty_list = lists.create(owner=self.reader, title="Nobody yet", is_exclusive=True)
        self.filter = filters.create(owner=self.reader, phrase="giraffe", whole_word=True)
        filters.create(owner=self.reader, phrase="猫", whole_word=False, action="hide")
        say(self.writer, "a giraffe, which the reader does not want to read of")
        soon = timezone.now() + timedelta(days=1)
        self.scheduled = schedule(sender=self.reader, publish_at=soon, content={"text": "tomorrow 明天"})
        schedule(sender=self.reader, publish_at=soon, content={"text": "a failed one"})
        ScheduledPost.objects.filter(pk=self.scheduled.pk + 1).update(failure="reply_gone")
        pin(item=self.root)
        pin(item=self.mine)

    @staticmethod
    def session(host: Any, title: str, state: State = State.UPCOMING, **fields: Any) -> LiveSession:
        now = timezone.now()
        made = live.create(host=host, title=title, starts_at=now + timedelta(minutes=12), now=now, **fields)
        if state != State.UPCOMING:
            made = live.start(session=made, now=now)
        return live.end(session=made, now=now) if state == State.REPLAY else made

    def play(self) -> None:
        """Queued plays, and merges that succeeded and failed."""
        now = timezone.now()
        for hours in range(3):
            at = now - timedelta(hours=hours)
            record_plays([Play(self.reader.pk, self.root.pk, at)], now=at)
            MergeRun.objects.create(
                node=0, task_shard=hours, started_at=at, seconds=1, users=9, plays=99, error=" failed"[:hours]
            )

    def own_public(self) -> Item:
        self.mine = say(self.reader, "mine for all, @writer")
        return self.mine


class Look(NamedTuple):
    """One visit: who opens which page and does what before the check."""

    path: Callable[[World], str]
    who: str = "reader"
    do: Callable[[Page], object] = lambda page: None
    status: int = 200


def fixed(path: str) -> Callable[[World], str]:
    return lambda world: path


def asks_for_an_app(world: World) -> str:
    query = {"client_id": app_of().client_id, "redirect_uri": OUT_OF_BAND, "response_type": "code", "scope": "read"}
    return reverse("oauth-authorize", query=query)


def let_in(page: Page) -> None:
    page.wait_for_timeout(1_000)  # earlier clicks are taken (looking.js)
    page.locator("button[value=allow]").click()
    page.locator("code").wait_for()


def begin_reply(page: Page) -> None:
    page.locator("[data-act=reply]").first.click()
    page.locator(".slot textarea").wait_for()


def open_menu(page: Page) -> None:
    page.locator(f"main {OPENER}").first.click()
    page.locator(MENU).wait_for()


def edit_in_place(page: Page) -> None:
    page.locator(f"article:has-text('mine for all') {OPENER}").first.click()
    page.locator(f"{MENU} a").first.click()
    page.locator("article .editor").wait_for()


def send_empty(page: Page) -> None:
    """Submit although the browser asks for text first."""
    addressed = (
        "form.composer",
        "form[action='/signup']",
        "form[action='/settings/confirm']",
        "form[action$='/report']",
    )
    others = page.locator(", ".join(f"main {form}" for form in addressed))
    form = page.locator("main form:not([action])").or_(others).first
    form.evaluate("form => { form.noValidate = true; }")
    send = form.locator("button.send")  # a composer has others after it
    (send.first if send.count() else form.locator("button").last).click()
    page.locator("main .errorlist").first.wait_for()


def come_to_code(page: Page) -> None:
    page.locator("#id_username").fill("reader")
    page.locator("#id_password").fill(PASSWORD)
    page.locator("main form.card button:not(.reveal)").click()
    page.locator("#id_code").wait_for()


def dismiss(page: Page) -> None:
    open_menu(page)
    page.locator("details[open] [action$=not-interested] button").click()
    page.locator(".dismissed button").wait_for()


def clear_history(page: Page) -> None:
    page.locator("[action$=clear] button").click()
    page.locator("#question [value=sure]").click()
    page.locator(".shown > #toast").wait_for()


def pause_history(page: Page) -> None:
    page.locator("[action$=pause] button").click()
    page.locator("[action$=resume] button").wait_for()


def cut_a_picture(page: Page) -> None:
    page.locator("input[name=avatar]").set_input_files({"name": "a.jpg", "mimeType": "image/jpeg", "buffer": jpeg()})
    page.locator("#cropper[open]").wait_for()


def attach_pictures(page: Page) -> None:
    files: Any = [{"name": "a.jpg", "mimeType": "image/jpeg", "buffer": jpeg(80 + side)} for side in range(2)]
    page.locator("[data-pick]").set_input_files(files)
    page.locator('.medium[data-state="kept"]').nth(1).wait_for()


def set_reminder(page: Page) -> None:
    button = page.locator("button[id^=remind]").first
    button.click()
    page.locator("button.set").first.wait_for()


# A second refresh button appears at the end.
ALL_IS_LOADED = """(() => {
    scrollTo(0, document.body.scrollHeight);
    return document.querySelector(".quiet-button[form=refresh]") !== null;
})()"""


def fetch_in_the_background(page: Page) -> None:
    say(UserFactory.create(), "since then")
    Visitor(page, "").holds(ALL_IS_LOADED)
    page.evaluate("scrollTo(0, 0)")
    page.evaluate("htmx.trigger('#fresh', 'due')")
    page.locator(".pill").wait_for()


PAGES: dict[str, list[Look]] = {
    "home": [
        Look(fixed("/"), do=begin_reply),
        Look(fixed("/"), do=edit_in_place),
        Look(fixed("/"), "newcomer"),
        Look(fixed("/"), ""),
        Look(lambda world: f"/?last_id={world.long.pk}"),
    ],
    "column": [Look(fixed("/beside"))],
    "discover": [
        Look(fixed("/discover"), do=open_menu),
        Look(fixed("/discover"), do=dismiss),
        Look(fixed("/discover"), "newcomer", fetch_in_the_background),
        Look(fixed(f"/discover?walk={'x' * 22}&page=2")),
        Look(fixed(f"/discover?walk={'y' * 22}")),
    ],
    "signup": [Look(fixed("/signup"), ""), Look(fixed("/signup"), "", send_empty)],
    "signup-waiting": [Look(fixed("/signup/waiting"), "")],
    "invite": [Look(lambda world: f"/invite/{world.invitation.code}", ""), Look(fixed("/invite/nonesuch"), "")],
    "about": [Look(fixed("/about"), ""), Look(fixed("/about"))],
    "settings-invitations": [Look(fixed("/settings/invitations"), "admin")],
    "login": [Look(fixed("/login?next=/settings"), ""), Look(fixed("/login"), "", send_empty)],
    "settings": [Look(fixed("/settings"))],
    "settings-profile": [Look(fixed("/settings/profile")), Look(fixed("/settings/profile"), do=cut_a_picture)],
    "settings-account": [Look(fixed("/settings/account")), Look(fixed("/settings/account"), "friend")],
    "settings-preferences": [Look(fixed("/settings/preferences"))],
    "settings-notifications": [Look(fixed("/settings/notifications"))],
    "settings-push": [Look(fixed("/settings/notifications/push"))],
    "offline": [Look(fixed("/offline"), "")],
    "scheduled": [Look(fixed("/scheduled")), Look(fixed("/scheduled"), "newcomer")],
    "scheduled-edit": [Look(lambda world: f"/scheduled/{world.scheduled.pk}")],
    "settings-filters": [Look(fixed("/settings/filters"), do=send_empty), Look(fixed("/settings/filters"), "newcomer")],
    "settings-filter": [Look(lambda world: f"/settings/filters/{world.filter.pk}")],
    "lists": [Look(fixed("/lists"), do=send_empty), Look(fixed("/lists"), "newcomer")],
    "list": [
        Look(lambda world: f"/lists/{world.list.pk}", do=open_menu),
        Look(lambda world: f"/lists/{world.empty_list.pk}"),
    ],
    "list-edit": [
        Look(lambda world: f"/lists/{world.list.pk}/edit"),
        Look(lambda world: f"/lists/{world.empty_list.pk}/edit"),
    ],
    "list-delete": [Look(lambda world: f"/lists/{world.list.pk}/delete")],
    "person-lists": [
        Look(fixed("/@writer/lists")),
        Look(fixed("/@newcomer/lists")),
        Look(fixed("/@writer/lists"), "friend"),
    ],
    "settings-password": [Look(fixed("/settings/password")), Look(fixed("/settings/password"), do=send_empty)],
    "login-code": [Look(fixed("/login"), "", come_to_code)],
    "password-reset": [Look(fixed("/password-reset"), ""), Look(fixed("/password-reset"), "", send_empty)],
    "password-reset-asked": [Look(fixed("/password-reset/asked"), "")],
    "password-reset-link": [
        Look(lambda world: world.reset_link, ""),
        Look(fixed("/password-reset/1/x-y"), "", status=410),
    ],
    "verify-email": [Look(lambda world: world.address_link, ""), Look(fixed("/verify-email/1.x"), "", status=410)],
    "confirm-identity": [
        Look(fixed("/settings/confirm")),
        Look(fixed("/settings/confirm"), do=send_empty),
        Look(fixed("/settings/confirm"), "friend"),
    ],
    "settings-email": [Look(fixed("/settings/email")), Look(fixed("/settings/email"), "friend")],
    "oauth-authorize": [
        Look(asks_for_an_app),
        Look(asks_for_an_app, do=let_in),
        Look(fixed("/oauth/authorize?client_id=nobody"), status=400),
    ],
    "settings-devices": [Look(fixed("/settings/devices"))],
    "settings-factors": [Look(fixed("/settings/factors")), Look(fixed("/settings/factors"), "friend")],
    "settings-factor-app": [Look(fixed("/settings/factors/app"), "friend")],
    "settings-factor-passkey": [Look(fixed("/settings/factors/passkey"))],
    "settings-recovery-codes": [Look(fixed("/settings/factors/recovery-codes"))],
    "settings-data": [Look(fixed("/settings/data"))],
    "settings-delete": [Look(fixed("/settings/delete"))],
    "history": [
        Look(fixed("/history")),
        Look(fixed("/history"), do=clear_history),
        Look(fixed("/history"), "newcomer", pause_history),
    ],
    "unwanted": [Look(fixed("/history/not-interested")), Look(fixed("/history/not-interested"), "newcomer")],
    "notifications": [Look(fixed("/notifications")), Look(fixed("/notifications"), "newcomer")],
    "mentions": [Look(fixed("/notifications/mentions"))],
    "search": [
        Look(fixed("/search")),
        Look(fixed("/search?q=zebra")),
        Look(fixed("/search?q=writer")),
        Look(fixed("/search?q=nothing-of-this"), ""),
        Look(fixed("/search?q=" + "x" * 300), status=422),
    ],
    "live": [Look(fixed("/live"), do=set_reminder), Look(fixed("/live"), "newcomer")],
    "live-session": [
        Look(lambda world: f"/live/{world.live.pk}"),
        Look(lambda world: f"/live/{world.upcoming.pk}", ""),
    ],
    "live-own": [Look(fixed("/live/own")), Look(fixed("/live/own"), "newcomer")],
    "live-plan": [Look(fixed("/live/new"), do=send_empty)],
    "live-edit": [Look(lambda world: f"/live/{world.hosted.pk}/edit")],
    "live-change": [Look(lambda world: f"/live/{world.hosted.pk}/cancel")],
    "tag": [Look(fixed("/tags/books")), Look(fixed("/tags/noneyet"), "")],
    "publish": [
        Look(fixed("/items/new")),
        Look(lambda world: f"/items/new?reply_to={world.root.pk}"),
        Look(fixed("/items/new"), do=send_empty),
        Look(fixed("/items/new"), do=attach_pictures),
    ],
    "item": [
        Look(lambda world: f"/items/{world.root.pk}", do=open_menu),
        Look(lambda world: f"/items/{world.deep.pk}"),
        Look(lambda world: f"/items/{world.talk.pk}"),
        Look(lambda world: f"/items/{world.long.pk}", ""),
    ],
    "conversations": [Look(fixed("/conversations")), Look(fixed("/conversations"), "newcomer")],
    "conversation-requests": [Look(fixed("/conversations/requests"))],
    "conversation": [Look(lambda world: f"/conversations/{world.talk.pk}", do=open_menu)],
    "conversation-new": [Look(fixed("/conversations/new")), Look(fixed("/conversations/new"), do=send_empty)],
    "welcome": [Look(fixed("/welcome"), "newcomer")],
    "welcome-people": [Look(fixed("/welcome/people?tag=books"), "newcomer")],
    "find-people": [Look(fixed("/people"))],
    "menu": [Look(lambda world: f"/items/{world.root.pk}/menu"), Look(lambda world: f"/items/{world.own.pk}/menu")],
    "likers": [Look(lambda world: f"/items/{world.root.pk}/likes")],
    "reposters": [
        Look(lambda world: f"/items/{world.own.pk}/reposts"),
        Look(lambda world: f"/items/{world.root.pk}/reposts", ""),
    ],
    "relate": [Look(fixed("/@friend/block"))],
    "hidden-replies": [Look(lambda world: f"/items/{world.root.pk}/hidden-replies")],
    "quotes": [Look(lambda world: f"/items/{world.root.pk}/quotes")],
    "edits": [Look(lambda world: f"/items/{world.own.pk}/edits")],
    "edit": [Look(lambda world: f"/items/{world.own.pk}/edit")],
    "delete": [Look(lambda world: f"/items/{world.own.pk}/delete")],
    "report": [Look(lambda world: f"/items/{world.root.pk}/report")],
    "report-session": [Look(lambda world: f"/live/{world.live.pk}/report")],
    "profile": [
        Look(fixed("/@reader"), do=open_menu),
        Look(fixed("/@writer"), do=open_menu),
        Look(fixed("/@writer"), ""),
        Look(fixed("/@blocked")),
        Look(fixed("/@newcomer"), "newcomer"),
    ],
    "profile_media": [Look(fixed("/@writer/media")), Look(fixed("/@newcomer/media"), "")],
    "profile_replies": [Look(fixed("/@writer/replies")), Look(fixed("/@newcomer/replies"), "")],
    "follow-requests": [Look(fixed("/follow-requests")), Look(fixed("/follow-requests"), "newcomer")],
    "notifications-of": [Look(fixed("/notifications/likes")), Look(fixed("/notifications/posts"), "newcomer")],
    "terms": [Look(fixed("/terms"), "")],
    "privacy": [Look(fixed("/privacy"), "")],
    "moderation-figures": [Look(fixed("/about/moderation"), "")],
    "settings-mutes": [Look(fixed("/settings/mutes")), Look(fixed("/settings/mutes"), "newcomer")],
    "settings-blocks": [Look(fixed("/settings/blocks"))],
    "settings-bells": [Look(fixed("/settings/bells"))],
    "settings-import-export": [
        Look(fixed("/settings/import-export")),
        Look(fixed("/settings/import-export"), do=send_empty),
    ],
    "settings-archive": [
        Look(fixed("/settings/import-archive")),
        Look(fixed("/settings/import-archive"), do=send_empty),
    ],
    "decisions": [Look(fixed("/decisions")), Look(fixed("/decisions"), "newcomer")],
    "decision": [
        Look(lambda world: f"/decisions/{world.decision.pk}"),
        Look(lambda world: f"/decisions/{world.decision.pk}", do=send_empty),
        Look(lambda world: f"/decisions/{world.appealed.pk}"),
    ],
    "suspended": [
        Look(lambda world: f"/suspended/{world.right}", ""),
        Look(fixed("/suspended/1.1.1"), "", status=410),
    ],
    "report-account": [Look(fixed("/@friend/report")), Look(fixed("/@friend/report"), do=send_empty)],
    "mute-for": [Look(fixed("/@friend/mute-for"))],
    "note": [Look(fixed("/@friend/note"))],
    "bookmarks": [Look(fixed("/bookmarks")), Look(fixed("/bookmarks"), "newcomer")],
    "likes": [Look(fixed("/likes"))],
    "followers": [
        Look(fixed("/@writer/followers")),
        Look(fixed("/@reader/followers")),
        Look(fixed("/@newcomer/followers"), ""),
    ],
    "following": [Look(fixed("/@reader/following"))],
    "admin": [
        Look(fixed("/admin/seen/mergerun/"), "admin"),
        Look(fixed("/admin/moderation/case/"), "admin"),
        Look(lambda world: f"/admin/moderation/case/{world.case.pk}/change/", "admin"),
        Look(lambda world: f"/admin/moderation/appeal/{world.appeal.pk}/change/", "admin"),
    ],
    "errors": [
        Look(fixed("/items/1"), status=404),
        Look(fixed("/?last_id=x"), status=400),
        Look(lambda world: f"/items/{world.root.pk}/edit", status=403),
    ],
}
WITHOUT = {
    "news": "a part of home",
    "list-news": "a part of the page of a list",
    "hover-card": "a part of pages with names",
    "dismiss-suggestions": "leads back",
    "list-add": "leads back",
    "list-remove": "leads back",
    "settings-filter-delete": "leads back",
    "scheduled-delete": "leads back",
    "pin": "leads back",
    "unpin": "leads back",
    "position": "answers nothing",
    "feed": "read by programs",
    "robots": "the same",
    "sitemap": "the same",
    "sitemap-posts": "the same",
    "sitemap-people": "the same",
    "manifest": "the same",
    "worker": "the same",
    "icon": "a picture",
    "settings-push-change": "leads back",
    "settings-push-remove": "leads back",
    "settings-push-trial": "leads back",
    "complete": "a part of composers",
    "draft-media": "a part of composers",
    "media-form": "a part of composers",
    "thread-part": "a part of composers",
    "poll-form": "a part of composers",
    "unread": "a part of every page",
    "notification-news": "a part of the notifications",
    "first-admin": "the form of sign-up, once in a site's life",
    "suspended-data": "a download",
    "strike": "leads to a decision",
    "logout": "leads to the login",
    "relate-tag": "leads back to the hashtag",
    "log-out-everywhere": "leads to the settings",
    "login-passkey": "leads on",
    "login-passkey-options": "a challenge, for a script",
    "confirm-passkey": "leads on",
    "confirm-passkey-options": "a challenge, for a script",
    "settings-email-code": "a form of settings-email",
    "settings-email-again": "leads back",
    "settings-email-remove": "leads back",
    "settings-devices-end": "leads back",
    "settings-factor-passkey-options": "a challenge, for a script",
    "settings-factor-remove": "leads back",
    "language": "leads back",
    "drawn-avatar": "a picture",
    "staff-file": "a picture",
    "favicon": "a picture",
    "oauth-token": "a token",
    "oauth-revoke": "an empty answer",
    "oauth-metadata": "JSON",
    "nodeinfo-links": "JSON",
    "nodeinfo": "JSON",
    "drawn-banner": "a picture",
    "theme": "a stylesheet",
    "dismiss-announcement": "leads back",
    "revoke-invitation": "leads back",
    "conversation-accept": "leads back",
    "conversation-remove": "leads back",
    "vote": "leads back",
    "like": "leads back",
    "unlike": "leads back",
    "revoke_quote": "leads back",
    "repost": "leads back",
    "undo_repost": "leads back",
    "not-interested": "leads back",
    "interested": "leads back",
    "history-change": "leads back",
    "settings-export": "a file",
    "settings-import-refused": "a file",
    "bookmark": "leads back",
    "remove-bookmark": "leads back",
    "emoji": "a part of composers",
    "mute-thread": "leads back",
    "unmute-thread": "leads back",
    "settings-archive-stop": "leads back",
    "live-news": "a part of the pages of live sessions",
    "hide-reply": "leads back",
    "unhide-reply": "leads back",
    "live-remind": "leads back",
    "live-forget": "leads back",
}
"""Not pages of their own."""


def test_every_page_is_looked_at() -> None:
    assert set(page_names) == (PAGES.keys() - {"errors", "admin"}) | WITHOUT.keys()


def violations(page: Page, rules: list[str] | None = None) -> Iterator[str]:
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": TAGS}
    by_voice = {"label-content-name-mismatch": {"enabled": True}} if not rules else {}
    options = json.dumps({"runOnly": only, "rules": by_voice, "resultTypes": ["violations"]})
    for found in page.evaluate(f"axe.run({options})")["violations"]:
        for node in found["nodes"]:
            yield f"{found['id']}: {node['html'][:160]} ({node['failureSummary'][:300]})"


TOO_WIDE = """
    width => document.documentElement.scrollWidth <= width ? [] : [...document.querySelectorAll("body *")]
        .filter(element => element.getBoundingClientRect().right > width)
        .map(element => `${element.tagName}.${element.className}`)
"""


def shown(visit: Visit, locale: str, pixels: int, *, parity: int) -> Iterator[tuple[str, Page]]:
    """Each page as its people see it, with its name. A short run opens every second page, in its last state."""
    world = World()
    visitors: dict[str, Visitor] = {}
    for number, (name, looks) in enumerate(PAGES.items()):
        if number % 2 != parity and not EVERYTHING:
            continue
        for place, look in enumerate(looks if EVERYTHING else looks[-1:]):
            visitor = visitors.get(look.who)
            if not visitor:
                visitor = visit(locale=locale, viewport={"width": pixels, "height": 900})
                visitor.page.route(COVER, lambda route: route.fulfill(body=PICTURE, content_type="image/svg+xml"))
                if look.who:
                    visitor.enter(getattr(world, look.who))
                visitors[look.who] = visitor
            page = visitor.page
            page.emulate_media(reduced_motion="reduce")
            response = page.goto(visitor.site + look.path(world))
            assert response is not None
            assert response.status == look.status, look.path(world)
            look.do(page)
            page.wait_for_load_state()
            yield f"{name} {place} {look.path(world)}", page


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("media_folder")
@pytest.mark.timeout(900)
# English is longer and gets the narrow width. A short run takes one look, language and scheme a page. The full run
# takes all.
@pytest.mark.parametrize(
    ("language", "pixels", "schemes"),
    some(
        2,
        [
            ("en", 390, ["light", "dark"]),
            ("zh", 1280, ["dark", "light"]),
            ("ar", 390, ["light", "dark"]),
            ("es", 390, ["dark", "light"]),
            ("ja", 1280, ["light", "dark"]),
        ],
    ),
)
def test_nothing_stands_in_anybodys_way(
    visit: Visit, settings: Any, tolerated: Any, language: str, pixels: int, schemes: list[Scheme]
) -> None:
    settings.HOME_POLL_SECONDS = 1000
    tolerated("with a status of 4")
    wrong: list[str] = []
    for at, page in shown(visit, LANGUAGES[language], pixels, parity=pixels == 390):
        page.emulate_media(color_scheme=schemes[0], reduced_motion="reduce")
        page.evaluate(AXE_SCRIPT)
        wrong += [f"{at} {schemes[0]}: {found}" for found in violations(page)]
        if EVERYTHING:
            page.emulate_media(color_scheme=schemes[1], reduced_motion="reduce")
            wrong += [f"{at} {schemes[1]}: {found}" for found in violations(page, OF_COLOUR)]
        page.set_viewport_size({"width": WIDTHS[pixels], "height": 900})
        if wide := page.evaluate(TOO_WIDE, WIDTHS[pixels]):
            wrong.append(f"{at} is wider than {WIDTHS[pixels]}: {wide}")
        page.set_viewport_size({"width": pixels, "height": 900})
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("template", ["500.html", "503.html", "429.html", "403_csrf.html"])
def test_pages_of_last_resort(visit: Visit, template: str, db: None) -> None:
    page = visit().page
    page.set_content(render_to_string(template, {"seconds": 3, "minutes": 0}))
    page.evaluate(AXE_SCRIPT)
    assert not list(violations(page))


@pytest.mark.django_db(transaction=True)
def test_readers_who_want_no_motion_get_none(visit: Visit) -> None:
    reader: User = UserFactory.create(username="reader")
    publish(sender=reader, content={"text": "still"})
    moving = """() => {
        document.querySelector("article").classList.add("htmx-added");
        return document.getAnimations().length > 0;
    }"""
    for motion, expected in (("no-preference", True), ("reduce", False)):
        visitor = visit(reduced_motion=motion)
        visitor.enter(reader)
        visitor.goto("/")
        assert visitor.page.evaluate(moving) is expected
