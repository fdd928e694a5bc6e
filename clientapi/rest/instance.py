from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from rest_framework.request import Request

from accounts import profile_fields
from accounts.about import site
from accounts.about.logo import icon_url
from accounts.about.models import SignUp
from accounts.models import User
from clientapi import html
from clientapi.accounts.people import accounts_of
from clientapi.entities import Account, absolute
from clientapi.errors import OpenView
from items.filters.filters import FILTERS
from items.polls import LONGEST, SHORTEST
from items.profiles.pins import PINS
from items.text import LINK_LENGTH, MEDIA_AN_ITEM, MOST_OPTIONS, OPTION_LENGTH, TEXT_LENGTH
from media.converter import MOST_PIXELS, takes_videos
from media.models import DESCRIPTION_LENGTH
from notifications.push.encryption import public_key
from runtime import version
from web.credentials import ANY_SCOPE
from web.rest import FeedResponse

SPEAKS = "4.5.0"
"""The Mastodon version of this API. Clients decide by it what they may use."""
VERSION = f"{SPEAKS} (compatible; feedsite {version.VERSION})"
API_VERSION = 7
IMAGES = ["image/jpeg", "image/png", "image/gif", "image/webp", "image/heic", "image/heif", "image/avif"]
TIMELINES = ("live_feeds", "hashtag_feeds", "trending_link_feeds")
VIDEOS = ["video/mp4", "video/quicktime", "video/webm", "video/x-matroska"]


def _domain() -> str:
    return str(settings.SITE_URL).partition("://")[2]


def _icon(size: int) -> str:
    return absolute(icon_url(site.current().logo, f"icon-{size}"))


def _thumbnail() -> str:
    return _icon(512)


def _thumbnails() -> dict[str, Any]:
    address = _thumbnail()
    return {"url": address, "versions": {"@1x": address, "@2x": address}, "description": ""}


def _length(field: str) -> int:
    return getattr(User._meta.get_field(field), "max_length", 0)


def _configuration() -> dict[str, Any]:
    access = "authenticated" if site.current().is_for_members else "public"
    return {
        "accounts": {
            "max_featured_tags": 0,
            "max_pinned_statuses": PINS,
            "max_display_name_length": _length("display_name"),
            "max_note_length": _length("bio"),
            "max_avatar_description_length": 0,
            "max_header_description_length": 0,
            "max_profile_fields": profile_fields.MOST,
            "profile_field_name_limit": profile_fields.LABEL_LENGTH,
            "profile_field_value_limit": profile_fields.TEXT_LENGTH,
        },
        "statuses": {
            "max_characters": TEXT_LENGTH,
            "max_media_attachments": MEDIA_AN_ITEM,
            "characters_reserved_per_url": LINK_LENGTH,
        },
        "media_attachments": {
            "supported_mime_types": IMAGES + (VIDEOS if takes_videos() else []),
            "description_limit": DESCRIPTION_LENGTH,
            "image_size_limit": settings.MEDIA_IMAGE_BYTES,
            "image_matrix_limit": settings.MEDIA_PIXELS,
            "video_size_limit": settings.MEDIA_VIDEO_BYTES,
            "video_frame_rate_limit": 120,
            "video_matrix_limit": MOST_PIXELS,
        },
        "polls": {
            "max_options": MOST_OPTIONS,
            "max_characters_per_option": OPTION_LENGTH,
            "min_expiration": int(SHORTEST.total_seconds()),
            "max_expiration": int(LONGEST.total_seconds()),
        },
        "translation": {"enabled": False},
        "timelines_access": {name: {"local": access, "remote": access} for name in TIMELINES},
        "limited_federation": True,
        "filters": {"max_filters": FILTERS},
    }


def rules() -> list[dict[str, Any]]:
    """The rules in force."""
    return [{"id": str(rule.id), "text": rule.text, "hint": "", "translations": {}} for rule in site.current().rules]


def _contact() -> Account | None:
    name = site.current().contact_username
    user = User.objects.active().named(name).first() if name else None
    return accounts_of([user])[0] if user is not None else None


def _languages() -> list[str]:
    return [code.partition("-")[0] for code, _name in settings.LANGUAGES]


class InstanceView(OpenView):
    """The description of the site, version 1."""

    scopes = ANY_SCOPE

    def get(self, request: Request) -> HttpResponse:
        """Return the description."""
        here = site.current()
        return FeedResponse(
            {
                "uri": _domain(),
                "title": here.name,
                "short_description": here.short_description,
                "description": html.html_without_mentions(here.description),
                "email": here.contact_email,
                "version": VERSION,
                "urls": _urls(),
                "stats": {"user_count": here.user_count, "status_count": here.item_count, "domain_count": 1},
                "thumbnail": _thumbnail(),
                "languages": _languages(),
                "registrations": here.sign_up != SignUp.CLOSED,
                "approval_required": here.sign_up == SignUp.APPROVAL,
                "invites_enabled": here.members_invite,
                "configuration": _configuration(),
                "contact_account": _contact(),
                "rules": rules(),
            }
        )


def _urls() -> dict[str, str]:
    """The address of streams: on their own port, or behind the proxy. Apps open sockets at it as it is; for
    server-sent events they ask the same host by http.
    """
    parts = urlsplit(str(settings.SITE_URL))
    name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    host = f"{name}:{settings.STREAM_PORT}" if settings.STREAM_PORT else parts.netloc
    return {"streaming_api": f"{'wss' if parts.scheme == 'https' else 'ws'}://{host}"}


class SecondInstanceView(OpenView):
    """The description of the site, version 2."""

    scopes = ANY_SCOPE

    def get(self, request: Request) -> HttpResponse:
        """Return the description."""
        here = site.current()
        return FeedResponse(
            {
                "domain": _domain(),
                "title": here.name,
                "version": VERSION,
                "source_url": "",
                "wrapstodon": None,
                "description": here.short_description,
                "usage": {"users": {"active_month": here.active_count}},
                "thumbnail": _thumbnails(),
                "icon": [{"src": _icon(size), "size": f"{size}x{size}"} for size in (192, 512)],
                "languages": _languages(),
                "configuration": {
                    "urls": {
                        "streaming": _urls()["streaming_api"],
                        "status": None,
                        "about": f"{settings.SITE_URL}/about",
                        "privacy_policy": f"{settings.SITE_URL}/privacy",
                        "terms_of_service": f"{settings.SITE_URL}/terms",
                    },
                    "vapid": {"public_key": public_key()},
                    **_configuration(),
                },
                "registrations": {
                    "enabled": here.sign_up != SignUp.CLOSED,
                    "approval_required": here.sign_up == SignUp.APPROVAL,
                    "reason_required": here.sign_up == SignUp.APPROVAL,
                    "message": None,
                    "min_age": None,
                    "url": f"{settings.SITE_URL}/signup",
                },
                "api_versions": {"mastodon": API_VERSION},
                "contact": {"email": here.contact_email, "account": _contact()},
                "rules": rules(),
            }
        )


@csrf_exempt
@require_safe
def nodeinfo_links(request: HttpRequest) -> HttpResponse:
    """The address of `nodeinfo`, where servers look for it."""
    schema = "http://nodeinfo.diaspora.software/ns/schema/2.0"
    return FeedResponse({"links": [{"rel": schema, "href": f"{settings.SITE_URL}/nodeinfo/2.0"}]})


@csrf_exempt
@require_safe
def nodeinfo(request: HttpRequest) -> HttpResponse:
    """The site's software, in the format NodeInfo. There is no federation."""
    here = site.current()
    counts = {"users": {"total": here.user_count, "activeMonth": here.active_count}, "localPosts": here.item_count}
    return FeedResponse(
        {
            "version": "2.0",
            "software": {"name": "feedsite", "version": version.VERSION},
            "protocols": [],
            "services": {"inbound": [], "outbound": []},
            "usage": counts,
            "openRegistrations": here.sign_up == SignUp.OPEN,
            # Client libraries that do not know the name find here how to speak to it.
            "metadata": {
                "nodeName": here.name,
                "nodeDescription": here.short_description,
                "upstream": {"name": "mastodon"},
            },
        }
    )
