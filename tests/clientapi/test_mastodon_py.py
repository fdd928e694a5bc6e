"""The unmodified Mastodon.py against a running site: a user's first day."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mastodon import Mastodon, MastodonAPIError, MastodonNotFoundError, MastodonUnauthorizedError

from accounts.models import User
from items import actions as items
from items.models import Item, Visibility
from relations import actions as relations
from tests.support.clients import ClientSite
from tests.support.factories import UserFactory, say
from tests.support.pictures import jpeg

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(300)]

SCOPES = ["read", "write", "follow", "push"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ClientSite]:
    site = ClientSite(tmp_path)
    site.start()
    yield site
    site.end()


def logged_in(site: ClientSite, user: User, scopes: list[str] = SCOPES) -> Mastodon:
    client_id, secret = Mastodon.create_app(
        "An app", api_base_url=site.address, scopes=scopes, website="https://x.example"
    )
    api = Mastodon(client_id=client_id, client_secret=secret, api_base_url=site.address)
    code = site.let_in(api.auth_request_url(scopes=scopes), user)
    api.log_in(code=code, scopes=scopes)
    return api


def test_the_first_day(site: ClientSite, tmp_path: Path) -> None:
    ann, bob, eve = UserFactory(username="ann"), UserFactory(username="bob"), UserFactory(username="eve")
    api = logged_in(site, ann)
    me = api.me()
    assert (me.username, me.acct, int(me.id)) == ("ann", "ann", ann.pk)
    assert api.instance_v2().domain == site.address.removeprefix("http://")
    assert api.instance_v1().uri == site.address.removeprefix("http://")
    assert api.app_verify_credentials().name == "An app"
    assert api.instance_nodeinfo().software.name == "feedsite"
    assert 0 < api.ratelimit_remaining < api.ratelimit_limit
    assert api.ratelimit_reset > time.time()

    # People
    account = api.account_lookup("bob")
    assert api.account(account.id).username == "bob"
    assert [one.username for one in api.account_search("bo")] == ["bob"]
    assert api.account_follow(account.id).following
    assert api.account_relationships([account.id, eve.pk])[0].following
    assert [one.username for one in api.account_following(me.id)] == ["bob"]
    assert [one.username for one in api.account_followers(account.id)] == ["ann"]
    assert api.account_mute(eve.pk).muting
    assert [one.username for one in api.mutes()] == ["eve"]
    assert not api.account_unmute(eve.pk).muting
    assert api.account_block(eve.pk).blocking
    assert [one.username for one in api.blocks()] == ["eve"]
    assert not api.account_unblock(eve.pk).blocking
    api.account_update_credentials(
        display_name="Ann A.", note="Says #things", locked=True, avatar=jpeg(), avatar_mime_type="image/jpeg"
    )
    me = api.me()
    assert (me.display_name, me.locked, me.source.note) == ("Ann A.", True, "Says #things")
    assert 'class="mention hashtag"' in me.note
    assert "/media/" in me.avatar
    relations.follow(follower=eve, followee=ann)
    assert [one.username for one in api.follow_requests()] == ["eve"]
    assert api.follow_request_authorize(eve.pk).followed_by
    assert not api.account_remove_from_followers(eve.pk).followed_by

    # Home, both ways
    said = [say(bob, f"post {number}").pk for number in range(1, 46)]
    page = api.timeline_home(limit=20)
    walked = [int(status.id) for status in page]
    while page := api.fetch_next(page):
        walked += [int(status.id) for status in page]
    assert walked == said[::-1]
    up: list[int] = []
    page = api.timeline_home(limit=20, min_id=said[4])
    while page:
        up = [int(status.id) for status in page] + up
        page = api.fetch_previous(page)
    assert up == said[5:][::-1]
    assert [int(status.id) for status in api.timeline_home(since_id=said[-3])] == said[-2:][::-1]
    assert [int(status.id) for status in api.timeline_home(max_id=said[2])] == said[:2][::-1]

    # Writing
    mine = api.status_post("Hello @bob, look: #Words https://example.org/x?a=1&b=2 <b>bold</b>", idempotency_key="one")
    assert (
        mine.id
        == api.status_post(
            "Hello @bob, look: #Words https://example.org/x?a=1&b=2 <b>bold</b>", idempotency_key="one"
        ).id
    )
    assert [mention.username for mention in mine.mentions] == ["bob"]
    assert [tag.name for tag in mine.tags] == ["words"]
    assert "&lt;b&gt;bold&lt;/b&gt;" in mine.content
    assert f'href="{site.address}/@bob"' in mine.content
    answer = api.status_post("An answer", in_reply_to_id=said[0], visibility="private", spoiler_text="careful")
    assert (int(answer.in_reply_to_id), int(answer.in_reply_to_account_id)) == (said[0], bob.pk)
    assert (answer.visibility, answer.spoiler_text, answer.sensitive) == ("private", "careful", True)
    secret = api.status_post("@bob, only you", visibility="direct")
    assert secret.visibility == "direct"
    assert [talk.last_status.id for talk in api.conversations()] == [secret.id]
    assert [account.username for account in api.conversations()[0].accounts] == ["bob"]
    with pytest.raises(MastodonAPIError):
        api.status_post("for @eve", visibility="unlisted")
    asked = api.status_post("Which?", poll=api.make_poll(["a", "b"], 600))
    assert [option.title for option in asked.poll.options] == ["a", "b"]
    api.status_delete(asked.id)

    # Pictures
    medium = api.media_post(jpeg(200, 100), "image/jpeg", description="a square", focus=(0.5, -0.5))
    assert (medium.type, medium.description, medium.meta.original.width) == ("image", "a square", 200)
    assert api.media_update(medium.id, description="two squares").description == "two squares"
    pictured = api.status_post("with a picture", media_ids=[medium.id], sensitive=True)
    assert [one.description for one in pictured.media_attachments] == ["two squares"]
    assert pictured.sensitive
    with pytest.raises(MastodonAPIError):
        api.status_post("again", media_ids=[medium.id])
    assert [int(status.id) for status in api.account_statuses(me.id, only_media=True)] == [int(pictured.id)]

    # Acts
    assert api.status_favourite(said[3]).favourited
    assert [int(status.id) for status in api.favourites()] == [said[3]]
    assert not api.status_unfavourite(said[3]).favourited
    assert api.status_bookmark(said[3]).bookmarked
    assert [int(status.id) for status in api.bookmarks()] == [said[3]]
    assert not api.status_unbookmark(said[3]).bookmarked
    boost = api.status_reblog(said[3])
    assert (int(boost.reblog.id), boost.reblogged) == (said[3], True)
    assert [one.username for one in api.status_reblogged_by(said[3])] == ["ann"]
    assert api.status_favourited_by(said[3]) == []
    assert not api.status_unreblog(said[3]).reblogged
    assert api.status_pin(mine.id).pinned
    assert [int(status.id) for status in api.account_statuses(me.id, pinned=True)] == [int(mine.id)]
    assert not api.status_unpin(mine.id).pinned

    # Changing
    edited = api.status_update(mine.id, "Changed", spoiler_text="now folded")
    assert ("Changed" in edited.content, edited.spoiler_text) == (True, "now folded")
    assert api.status_source(mine.id).text == "Changed"
    assert [("Hello" in version.content, version.spoiler_text) for version in api.status_history(mine.id)] == [
        (True, ""),
        (False, "now folded"),
    ]
    context = api.status_context(said[0])
    assert [int(status.id) for status in context.descendants] == [int(answer.id)]
    assert [int(status.id) for status in api.status_context(answer.id).ancestors] == [said[0]]
    assert api.status_delete(secret.id).text == "@bob, only you"
    with pytest.raises(MastodonNotFoundError):
        api.status(secret.id)

    # Lists and filters
    made = api.list_create("Friends", replies_policy="none")
    api.list_accounts_add(made.id, [bob.pk])
    assert [one.username for one in api.list_accounts(made.id)] == ["bob"]
    assert [one.title for one in api.account_lists(bob.pk)] == ["Friends"]
    assert [int(status.id) for status in api.timeline_list(made.id, limit=3)] == said[-3:][::-1]
    assert api.list_update(made.id, "Good friends").title == "Good friends"
    api.list_accounts_delete(made.id, [bob.pk])
    api.list_delete(made.id)
    assert api.lists() == []
    old = api.filter_create("post 45", ["home"], whole_word=True, expires_in=3600)
    assert api.filters()[0].phrase == "post 45"
    newest = api.timeline_home(limit=40)
    assert [int(status.id) for status in newest if status.filtered] == [said[-1]]
    assert newest[0].filtered == []
    new = api.create_filter_v2(
        "post 44", ["home"], "hide", keywords_attributes=[{"keyword": "post 44", "whole_word": False}]
    )
    assert [one.keyword for one in new.keywords] == ["post 44"]
    assert {one.title for one in api.filters_v2()} == {"post 44", "post 45"}
    api.filter_delete(old.id)
    api.delete_filter_v2(new.id)
    assert api.filters() == []

    # Notifications
    items.like(user=bob, item=Item.objects.get(pk=mine.id))
    items.like(user=eve, item=Item.objects.get(pk=mine.id))
    say(bob, "I name @ann")
    relations.follow(follower=bob, followee=ann)
    notices = api.notifications()
    assert [(one.type, one.account.username) for one in notices] == [
        ("follow_request", "bob"),
        ("mention", "bob"),
        ("favourite", "eve"),
        ("favourite", "bob"),
        ("follow_request", "eve"),
    ][: len(notices)]
    assert [one.type for one in api.notifications(types=["mention"])] == ["mention"]
    assert "mention" not in {one.type for one in api.notifications(exclude_types=["mention"])}
    assert (
        api.notifications(id=notices[1].id).status.content
        == f'<p>I name <span class="h-card"><a href="{site.address}/@ann" class="u-url mention">'
        "@<span>ann</span></a></span></p>"
    )
    assert api.notifications_unread_count().count >= 3
    api.markers_set(["notifications", "home"], [notices[0].id, said[10]])
    assert api.notifications_unread_count().count == 0
    assert api.markers_get(["home"])["home"].last_read_id == str(said[10])

    # Search, tags, the public timeline
    assert [one.username for one in api.search("bob", result_type="accounts").accounts] == ["bob"]
    assert said[5] in [int(one.id) for one in api.search("post 6", result_type="statuses").statuses]
    assert [int(one.id) for one in api.search(f"{site.address}/items/{said[5]}", resolve=True).statuses] == [said[5]]
    tagged = api.status_post("about #birds")
    assert [int(one.id) for one in api.timeline_hashtag("Birds")] == [int(tagged.id)]
    assert [one.name for one in api.search("birds").hashtags] == ["birds"]
    assert api.tag_follow("Birds").following
    assert [one.name for one in api.followed_tags()] == ["birds"]
    assert api.tag("birds").following
    assert not api.tag_unfollow("birds").following
    assert list(api.followed_tags()) == []
    public = api.timeline_public(limit=2)
    assert public[0].id == tagged.id
    assert api.fetch_previous(api.fetch_next(public))[-1].id == public[-1].id

    # Push
    with pytest.raises(MastodonNotFoundError):
        api.push_subscription()
    _private, public = api.push_subscription_generate_keys()
    endpoint = "https://push.example.org/send/1"
    made = api.push_subscription_set(endpoint, public, mention_events=True, follow_events=False, policy="followed")
    assert (made.endpoint, made.alerts.mention, made.alerts.follow, made.policy) == (endpoint, True, False, "followed")
    assert made.server_key == api.instance_v2().configuration.vapid.public_key
    assert api.push_subscription_update(follow_events=True).alerts.follow
    assert api.push_subscription().id == made.id
    api.push_subscription_delete()
    with pytest.raises(MastodonNotFoundError):
        api.push_subscription()

    # Not on this site
    for empty in (api.custom_emojis, api.trending_links, api.featured_tags, api.endorsements):
        assert empty() == []
    assert api.preferences()["posting:default:visibility"] == "public"
    assert api.status_mute(said[0]).muted
    assert not api.status_unmute(said[0]).muted
    report = api.report(bob.pk, status_ids=[said[0]], comment="look", category="spam")
    assert report.target_account.username == "bob"

    api.revoke_access_token()
    with pytest.raises((MastodonUnauthorizedError, MastodonAPIError)):
        logged_in_again(site, api)


def logged_in_again(site: ClientSite, api: Mastodon) -> None:
    Mastodon(access_token=api.access_token or "gone", api_base_url=site.address).me()


@pytest.mark.long
def test_scopes_and_strangers(site: ClientSite) -> None:
    ann, bob = UserFactory(username="ann"), UserFactory(username="bob")
    public, hidden = say(bob, "for all"), say(bob, "for few", visibility=Visibility.FOLLOWERS)
    reading = logged_in(site, ann, ["read:statuses"])
    assert int(reading.status(public.pk).id) == public.pk
    with pytest.raises(MastodonAPIError, match="outside the authorized scopes"):
        reading.status_post("no")
    with pytest.raises(MastodonNotFoundError):
        reading.status(hidden.pk)
    stranger = Mastodon(api_base_url=site.address)
    assert [int(status.id) for status in stranger.timeline_public()] == [public.pk]
    with pytest.raises(MastodonUnauthorizedError):
        stranger.timeline_home()
