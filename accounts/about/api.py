from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import msgspec
from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.about import site
from accounts.about.logo import icon_url
from accounts.about.models import SiteSettings
from accounts.about.signals import limits_asked
from runtime import version
from web.credentials import ANY_SCOPE
from web.rest import ApiView, FeedResponse


class SiteRule(msgspec.Struct):
    """A rule. Reports name it by id."""

    id: str
    text: str


class Contact(msgspec.Struct):
    """Who runs the site. Both may be empty."""

    email: str
    username: str


class SiteCounts(msgspec.Struct):
    """Approximate numbers of users and public items."""

    users: int
    items: int


class SiteAnswer(msgspec.Struct):
    """The site. `sign_up`: open, invite, approval or closed. `looking`: `everybody` or `members`."""

    name: str
    short_description: str
    description: str
    logo_url: str
    accent: str
    rules: list[SiteRule]
    contact: Contact
    languages: list[str]
    sign_up: str
    looking: str
    announcement: str
    limits: dict[str, int]
    counts: SiteCounts
    version: str


class SiteView(ApiView):
    scopes = ANY_SCOPE
    authentication_classes: Sequence[Any] = []
    permission_classes: Sequence[Any] = []

    @extend_schema(operation_id="read_site", responses={200: SiteAnswer}, auth=[])
    def get(self, request: Request) -> HttpResponse:
        """The site's description, rules and limits."""
        here = site.current()
        return FeedResponse(
            SiteAnswer(
                name=here.name,
                short_description=here.short_description,
                description=here.description,
                logo_url=request.build_absolute_uri(icon_url(here.logo, "icon-512")),
                accent=here.accent,
                rules=[SiteRule(str(rule.id), rule.text) for rule in here.rules],
                contact=Contact(here.contact_email, here.contact_username),
                languages=[code for code, _name in settings.LANGUAGES],
                sign_up=here.sign_up.value,
                looking=here.looking,
                announcement=here.news,
                limits=limits(),
                counts=SiteCounts(here.user_count, here.item_count),
                version=version.VERSION,
            )
        )


@cache
def limits() -> dict[str, int]:
    """The site's limits by name. Packages above add theirs by `limits_asked`."""
    found = {
        "image_bytes": settings.MEDIA_IMAGE_BYTES,
        "video_bytes": settings.MEDIA_VIDEO_BYTES,
        "image_pixels": settings.MEDIA_PIXELS,
        "following": settings.FOLLOW_CAP,
    }
    for _receiver, told in limits_asked.send(sender=SiteSettings):
        found |= cast("dict[str, int]", told)
    return dict(sorted(found.items()))
