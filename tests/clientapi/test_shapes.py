"""Every answer has the attributes and types of Mastodon's documentation (content/en/entities)."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts.about import site
from accounts.about.models import Rule, SiteSettings
from accounts.models import User
from clientapi import entities
from items import actions as items
from items.models import Item, ItemType
from relations import actions as relations
from tests.support.clients import Caller
from tests.support.factories import UserFactory, say, with_card
from tests.support.pictures import jpeg

pytestmark = pytest.mark.django_db

PLAIN: dict[str, Any] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "hash": lambda value: isinstance(value, dict),
    "id": lambda value: isinstance(value, str) and bool(value),
    "number": lambda value: isinstance(value, str) and value.isdecimal(),
    "url": lambda value: isinstance(value, str) and bool(re.match(r"(https?|wss?)://", value)),
    "time": lambda value: bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(value))),
    "none": lambda value: value is None,
}
ACCOUNT = """
    id:id username:str acct:str url:url uri:url display_name:str note:str avatar:url avatar_static:url
    avatar_description:str header:url header_static:url header_description:str locked:bool fields:[Field] emojis:[hash]
    bot:bool group:bool discoverable:bool|none indexable:bool noindex?:bool|none created_at:time
    last_status_at:str|none statuses_count:int followers_count:int following_count:int hide_collections:bool|none
    show_media:bool show_media_replies:bool show_featured:bool roles:[hash]|none feature_approval:Approval
"""
INSTANCE_LIMITS = """
    statuses:StatusLimits media_attachments:MediaLimits polls:PollLimits accounts:AccountLimits
"""
ENTITIES = {
    "Account": ACCOUNT,
    "Field": "name:str value:str verified_at:time|none",
    "CredentialAccount": f"{ACCOUNT} source:Source role:Role",
    "Source": """
        attribution_domains:[str] note:str fields:[Field] privacy:str sensitive:bool language:str
        follow_requests_count:int hide_collections:bool|none discoverable:bool|none indexable:bool quote_policy:str
    """,
    "Role": "id:str name:str color:str permissions:number highlighted:bool collection_limit:int",
    "MutedAccount": f"{ACCOUNT} mute_expires_at:time|none",
    "PartialAccount": """
        id:id acct:str url:url avatar:url avatar_static:url avatar_description:str locked:bool bot:bool
    """,
    "Approval": "automatic:[str] manual:[str] current_user:str",
    "Relationship": """
        id:id following:bool showing_reblogs:bool notifying:bool languages:[str]|none followed_by:bool blocking:bool
        blocked_by:bool muting:bool muting_notifications:bool muting_expires_at:time|none requested:bool
        requested_by:bool domain_blocking:bool endorsed:bool note:str
    """,
    "Status": """
        id:id uri:str created_at:time account:Account content:str visibility:str sensitive:bool spoiler_text:str
        media_attachments:[MediaAttachment] application?:hash mentions:[Mention] tags:[StatusTag] emojis:[hash]
        reblogs_count:int favourites_count:int quotes_count:int replies_count:int url:url|none in_reply_to_id:id|none
        in_reply_to_account_id:id|none reblog:Status|none poll:Poll|none card:PreviewCard|none language:str|none
        text?:str edited_at:time|none quote:Quote|ShallowQuote|none quote_approval:Approval favourited?:bool
        reblogged?:bool muted?:bool bookmarked?:bool pinned?:bool filtered?:[FilterResult] tagged_collections:[hash]
    """,
    "Mention": "id:id username:str url:url acct:str",
    "StatusTag": "name:str url:url",
    "MediaAttachment": """
        id:id type:str url:url|none preview_url:url|none remote_url:url|none meta:hash|none description:str|none
        blurhash:str|none
    """,
    "Quote": "state:str quoted_status:Status|none",
    "ShallowQuote": "state:str quoted_status_id:id|none",
    "Poll": """
        id:id expires_at:time|none expired:bool multiple:bool votes_count:int voters_count:int|none options:[PollOption]
        emojis:[hash] voted?:bool own_votes?:[int]
    """,
    "PollOption": "title:str votes_count:int|none",
    "PreviewCard": """
        url:url title:str description:str type:str authors:[hash] author_name:str author_url:str provider_name:str
        provider_url:url html:str width:int height:int image:url|none embed_url:str blurhash:str|none
        missing_attribution:bool|none
    """,
    "StatusSource": "id:id text:str spoiler_text:str",
    "StatusEdit": """
        content:str spoiler_text:str sensitive:bool created_at:time account:Account poll?:hash
        media_attachments:[MediaAttachment] emojis:[hash] quote?:Quote|ShallowQuote|none
    """,
    "Context": "ancestors:[Status] descendants:[Status]",
    "ScheduledStatus": "id:id scheduled_at:time params:ScheduledParams media_attachments:[MediaAttachment]",
    "ScheduledParams": """
        text:str poll:hash|none media_ids:[id]|none sensitive:bool|none spoiler_text:str|none visibility:str
        in_reply_to_id:int|none language:str|none application_id:int scheduled_at:none idempotency:str|none
        with_rate_limit:bool
    """,
    "Notification": "id:id type:str group_key:str created_at:time account:Account status?:Status",
    "Grouped": "accounts:[Account] partial_accounts?:[PartialAccount] statuses:[Status] notification_groups:[Group]",
    "Group": """
        group_key:str notifications_count:int type:str most_recent_notification_id:int page_min_id?:id page_max_id?:id
        latest_page_notification_at?:time sample_account_ids:[id] status_id?:id
    """,
    "Filter": """
        id:id title:str context:[str] expires_at:time|none filter_action:str keywords?:[FilterKeyword]
        statuses?:[FilterStatus]
    """,
    "FilterKeyword": "id:id keyword:str whole_word:bool",
    "FilterStatus": "id:id status_id:id",
    "FilterResult": "filter:Filter keyword_matches:[str]|none status_matches:[str]|none",
    "FirstFilter": "id:id phrase:str context:[str] expires_at:time|none irreversible:bool whole_word:bool",
    "List": "id:id title:str replies_policy:str exclusive:bool",
    "Conversation": "id:id unread:bool accounts:[Account] last_status:Status|none",
    "Announcement": """
        id:id content:str starts_at:time|none ends_at:time|none all_day:bool published_at:time updated_at:time
        read?:bool mentions:[hash] statuses:[hash] tags:[hash] emojis:[hash] reactions:[hash]
    """,
    "Tag": "id:id name:str url:url history:[Use] following?:bool featuring?:bool",
    "Use": "day:number uses:number accounts:number",
    "Suggestion": "source:str sources:[str] account:Account",
    "Search": "accounts:[Account] statuses:[Status] hashtags:[Tag]",
    "Marker": "last_read_id:id version:int updated_at:time",
    "Report": """
        id:id action_taken:bool action_taken_at:time|none category:str comment:str forwarded:bool created_at:time
        status_ids:[id]|none collection_ids:[id]|none rule_ids:[id]|none target_account:Account
    """,
    "Rule": "id:id text:str hint:str translations:hash",
    "ExtendedDescription": "updated_at:time content:str",
    "Preferences": """
        posting:default:visibility:str posting:default:sensitive:bool posting:default:language:str|none
        reading:expand:media:str reading:expand:spoilers:bool
    """,
    "Application": """
        id:id name:str website?:url|none scopes:[str] redirect_uris:[str] redirect_uri:str vapid_key:str
        client_id:str client_secret:str client_secret_expires_at:int
    """,
    "FirstInstance": """
        uri:str title:str short_description:str description:str email:str version:str urls:FirstUrls stats:Stats
        thumbnail:url|none languages:[str] registrations:bool approval_required:bool invites_enabled:bool
        configuration:FirstConfiguration contact_account:Account|none rules:[Rule]
    """,
    "FirstUrls": "streaming_api:url",
    "Stats": "user_count:int status_count:int domain_count:int",
    "FirstConfiguration": INSTANCE_LIMITS,
    "Instance": """
        domain:str title:str version:str source_url:str description:str usage:hash thumbnail:Thumbnail icon:[hash]
        wrapstodon:str|none languages:[str] configuration:Configuration registrations:Registrations api_versions:Apis
        contact:Contact rules:[Rule]
    """,
    "Thumbnail": "url:url description:str blurhash?:str versions?:hash",
    "Configuration": f"""
        {INSTANCE_LIMITS} urls:Urls vapid:Vapid translation:hash timelines_access:Access limited_federation:bool
    """,
    "Urls": "streaming:url status:url|none about:url privacy_policy:url|none terms_of_service:url|none",
    "Vapid": "public_key:str",
    "Access": "live_feeds:Feeds hashtag_feeds:Feeds trending_link_feeds:Feeds",
    "Feeds": "local:str remote:str",
    "AccountLimits": """
        max_display_name_length:int max_note_length:int max_avatar_description_length:int
        max_header_description_length:int max_featured_tags:int max_pinned_statuses:int max_profile_fields:int
        profile_field_name_limit:int profile_field_value_limit:int
    """,
    "StatusLimits": "max_characters:int max_media_attachments:int characters_reserved_per_url:int",
    "MediaLimits": """
        supported_mime_types:[str] description_limit:int image_size_limit:int image_matrix_limit:int
        video_size_limit:int video_frame_rate_limit:int video_matrix_limit:int
    """,
    "PollLimits": "max_options:int max_characters_per_option:int min_expiration:int max_expiration:int",
    "Registrations": """
        enabled:bool approval_required:bool message:str|none min_age:int|none reason_required:bool|none url:url|none
    """,
    "Apis": "mastodon:int",
    "Contact": "email:str account:Account|none",
}
"""Attributes by entity: `name:type`, `name?` if it may be absent, `[type]` for a list, `type|none`."""


def faults(value: Any, kind: str, at: str = "") -> list[str]:
    """Where a value differs from its type."""
    if "|" in kind:
        tried = [faults(value, one, at) for one in kind.split("|")]
        return min(tried, key=len)
    if kind.startswith("["):
        inner = kind.strip("[]")
        if not isinstance(value, list):
            return [f"{at}: {value!r} is no list"]
        return [fault for place, one in enumerate(value) for fault in faults(one, inner, f"{at}[{place}]")]
    if kind in PLAIN:
        return [] if PLAIN[kind](value) else [f"{at}: {value!r} is no {kind}"]
    if not isinstance(value, dict):
        return [f"{at}: {value!r} is no {kind}"]
    found = []
    for attribute in ENTITIES[kind].split():
        name, _, inner = attribute.rpartition(":")
        optional = name.endswith("?")
        name = name.removesuffix("?")
        if name in value:
            found += faults(value[name], inner, f"{at}.{name}")
        elif not optional:
            found.append(f"{at}.{name} is missing")
    return found


@pytest.fixture
def ann() -> User:
    return UserFactory(
        username="ann", display_name="Ann", bio="Hi #there", profile_fields=[{"name": "a", "value": "b"}]
    )


@pytest.fixture
def caller(ann: User) -> Caller:
    return Caller(ann)


def check(caller: Caller, path: str, kind: str, data: Any = None, *, method: str = "get", least: int = 1) -> Any:
    answer = caller.ask(method, path, data)
    assert not faults(answer, kind, path)
    assert not isinstance(answer, list) or len(answer) >= least, path
    return answer


def test_a_fault_is_seen() -> None:
    assert faults({"title": "x"}, "PollOption") == [".votes_count is missing"]
    assert faults([{"title": None, "votes_count": 1}], "[PollOption]") == ["[0].title: None is no str"]
    assert not faults({"title": "x", "votes_count": None}, "PollOption")


def test_people(caller: Caller, ann: User) -> None:
    bob, dan = UserFactory(username="bob"), UserFactory(is_locked=True)
    check(caller, "v1/accounts/verify_credentials", "CredentialAccount")
    check(caller, f"v1/accounts/{bob.pk}", "Account")
    for act in ("follow", "mute"):
        check(caller, f"v1/accounts/{bob.pk}/{act}", "Relationship", method="post")
    check(caller, f"v1/accounts/{dan.pk}/follow", "Relationship", method="post")
    check(caller, f"v1/accounts/relationships?id[]={bob.pk}&id[]={dan.pk}", "[Relationship]", least=2)
    check(caller, "v1/mutes", "[MutedAccount]")
    check(caller, f"v1/accounts/{ann.pk}/following", "[Account]")
    UserFactory.create_batch(2)
    check(caller, "v2/suggestions", "[Suggestion]")
    check(caller, "v1/suggestions", "[Account]")
    check(caller, "v1/preferences", "Preferences")
    made = check(caller, "v1/lists", "List", {"title": "Friends"}, method="post")
    check(caller, f"v1/lists/{made['id']}", "List")
    check(caller, "v2/search?q=bob", "Search")


def test_statuses(caller: Caller, ann: User) -> None:
    bob = UserFactory(username="bob")
    relations.follow(follower=ann, followee=bob)
    post = with_card(say(bob, "Look @ann #cats"))
    sent = {"title": "Cats", "context": ["home"], "keywords_attributes": [{"keyword": "#cats"}]}
    check(caller, "v2/filters", "Filter", sent, method="post")
    check(caller, "v1/filters", "[FirstFilter]")
    check(caller, "v2/filters", "[Filter]")
    picture = SimpleUploadedFile("a.jpg", jpeg(60, 40), "image/jpeg")
    medium = caller.post("v2/media", {"file": picture, "description": "a square"}, form=True)
    assert not faults(medium, "MediaAttachment")
    check(caller, "v1/statuses", "Status", {"status": "x", "media_ids": [medium["id"]]}, method="post")
    poll = items.publish(
        sender=bob, type=ItemType.POLL, content={"text": "?", "poll": {"options": ["a", "b"], "closes_in": 600}}
    )
    check(caller, f"v1/polls/{poll.pk}", "Poll")
    for fields in ({"in_reply_to_id": str(post.pk)}, {"quoted_status_id": str(post.pk)}):
        made = check(caller, "v1/statuses", "Status", {"status": "y", **fields}, method="post")
    again = check(caller, "v1/statuses", "Status", {"status": "z", "quoted_status_id": made["id"]}, method="post")
    assert again["quote"]["quoted_status"]["quote"]["quoted_status_id"] == str(post.pk)
    for act in ("favourite", "reblog", "bookmark", "mute"):
        check(caller, f"v1/statuses/{post.pk}/{act}", "Status", method="post")
    items.edit(item=Item.objects.get(pk=poll.pk), content=poll.content | {"text": "??"})
    check(caller, f"v1/statuses/{poll.pk}/history", "[StatusEdit]", least=2)
    check(caller, f"v1/statuses/{made['id']}/history", "[StatusEdit]")
    check(caller, f"v1/statuses/{made['id']}/source", "StatusSource")
    check(caller, f"v1/statuses/{post.pk}/context", "Context")
    home = check(caller, "v1/timelines/home", "[Status]", least=5)
    assert any(one["filtered"] for one in home)
    assert any(one["card"] for one in home)
    check(caller, "v1/statuses", "Status", {"status": "@bob hi", "visibility": "direct"}, method="post")
    check(caller, "v1/conversations", "[Conversation]")
    check(caller, "v1/trends/tags", "[Tag]", least=0)
    check(caller, "v1/tags/cats/follow", "Tag", method="post")
    check(caller, "v1/followed_tags", "[Tag]")
    check(caller, "v1/markers", "hash", {"home": {"last_read_id": str(post.pk)}}, method="post")
    assert not faults(caller.get("v1/markers?timeline[]=home")["home"], "Marker")
    check(caller, "v1/reports", "Report", {"account_id": str(bob.pk), "status_ids": [str(post.pk)]}, method="post")
    check(caller, f"v1/statuses/{made['id']}", "Status", method="delete")


def test_scheduled_statuses(caller: Caller, ann: User) -> None:
    answered = say(ann, "x")
    sent = {"status": "y", "in_reply_to_id": str(answered.pk), "scheduled_at": timezone.now() + timedelta(hours=1)}
    check(caller, "v1/statuses", "ScheduledStatus", sent, method="post")
    (found,) = check(caller, "v1/scheduled_statuses", "[ScheduledStatus]")
    assert found["params"]["in_reply_to_id"] == answered.pk


def test_notifications(caller: Caller, ann: User) -> None:
    post = say(ann, "x")
    for other in UserFactory.create_batch(3):
        relations.follow(follower=other, followee=ann)
        items.like(user=other, item=post)
        say(other, "hi @ann")
    check(caller, "v1/notifications", "[Notification]", least=9)
    groups = check(caller, "v2/notifications?expand_accounts=partial_avatars", "Grouped")
    assert {one["type"] for one in groups["notification_groups"]} == {"follow", "favourite", "mention"}


def test_the_site(caller: Caller) -> None:
    UserFactory(username="boss")
    SiteSettings.objects.update_or_create(pk=1, defaults={"announcement": "News", "contact_username": "boss"})
    Rule.objects.create(number=1, text="Be kind")
    site.site_copy.forget()
    instance = check(caller, "v2/instance", "Instance")
    assert instance["contact"]["account"]
    check(caller, "v1/instance", "FirstInstance")
    check(caller, "v1/instance/rules", "[Rule]")
    check(caller, "v1/instance/extended_description", "ExtendedDescription")
    check(caller, "v1/announcements", "[Announcement]")
    app = {"client_name": "An app", "redirect_uris": "urn:ietf:wg:oauth:2.0:oob", "scopes": "read"}
    check(Caller(None), "v1/apps", "Application", app, method="post")


def test_each_struct_is_in_the_table() -> None:
    """An attribute of a struct that the documentation does not have may stand, but no struct is unchecked."""
    renamed = {"Attachment": "MediaAttachment", "ConversationBody": "Conversation"}
    structs = {name for name, one in vars(entities).items() if getattr(one, "__module__", "") == entities.__name__}
    structs = {renamed.get(name, name) for name in structs if hasattr(getattr(entities, name), "__struct_fields__")}
    assert structs <= ENTITIES.keys()
