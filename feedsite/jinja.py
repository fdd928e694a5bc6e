"""Names for all page templates in templates/."""

from collections.abc import Callable
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import intcomma
from django.template.defaultfilters import capfirst, linebreaksbr, urlencode
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language, gettext, ngettext, npgettext, pgettext
from jinja2 import Environment, FileSystemBytecodeCache, StrictUndefined, Undefined
from markupsafe import Markup

from accounts import people
from accounts.about import words
from accounts.avatars import initial, tint
from accounts.joining.invitations import may_invite
from items.pages import cards, drawing, pictures, reading
from items.pages.forms import ItemForm
from live import clock
from live.hosting import scheduled_of
from media import sources
from notifications.sentences import sentence
from web import languages
from web.icons import card_icon, icon
from web.pages import came_from
from web.times import format_moment

Text = TypeVar("Text", bound=str)
EXAMPLE = "0"
"""The item that the example of a reply answers."""


def environment(**options: Any) -> Environment:
    """The environment of page templates. Undefined names are errors in tests and development, else empty."""
    kept = Path(settings.DATA_DIR, "templates")
    kept.mkdir(parents=True, exist_ok=True)
    options["undefined"] = StrictUndefined if settings.STRICT_TEMPLATES else Undefined
    options["bytecode_cache"] = FileSystemBytecodeCache(str(kept))
    made = Environment(**options, trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.i18n"])  # noqa: S701 (autoescape is given)
    made.install_gettext_callables(  # type: ignore[attr-defined]
        once_per_language(gettext),
        ngettext,
        newstyle=True,
        pgettext=once_per_language(pgettext),
        npgettext=npgettext,
    )

    @cache
    def drawn(name: str, _language: str | None) -> Markup:
        return Markup(made.get_template(name).render())  # noqa: S704 (a page's own part)

    @cache
    def empty_fields(_language: str | None, _is_for_members: bool, is_short: bool) -> Markup:
        fields = made.get_template("items/_fields.html")
        return Markup(fields.render(form=ItemForm.fresh(), is_short=is_short))  # noqa: S704

    @cache
    def empty_reply_fields(_language: str | None, _is_for_members: bool) -> str:
        return made.get_template("items/_fields.html").render(form=ItemForm(initial={"reply_to": EXAMPLE}))

    def shared_part(name: str) -> Markup:
        """A part of pages, rendered once per language."""
        return drawn(name, get_language())

    def fields_of(form: ItemForm, is_short: bool = False) -> Markup:
        """The fields of a post's form. Empty ones are rendered once per language and kind of site.

        `is_short`: without the tools, which scripts put in (parts.js).
        """
        kind = get_language(), words.last_known_site().is_for_members
        if form.is_empty:
            return empty_fields(*kind, is_short)
        if form.is_empty_reply:
            return Markup(empty_reply_fields(*kind).replace(f"reply-{EXAMPLE}-", f"reply-{form.answered}-"))  # noqa: S704
        return Markup(made.get_template("items/_fields.html").render(form=form))  # noqa: S704

    made.globals |= {
        "_": translated,
        "shared_part": shared_part,
        "fields_of": fields_of,
        "empty_form": ItemForm.fresh,
        "url": url,
        "static": cache(static),
        "icon": icon,
        "card_icon": card_icon,
        "badge": people.big_v_badge,
        "card_words": cards.card_words,
        "slot": drawing.slot,
        "came_from": came_from,
        "lang": languages.lang,
        "direction": languages.direction,
        "admin_speaks": languages.admin_speaks,
        "other_languages": languages.other_languages,
        "known_site": words.last_known_site,
        "name_of": people.name_of,
        "badge_of": people.badge_of,
        "lock_of": people.lock_of,
        "avatar": people.avatar,
        "ground": pictures.ground,
        "figures": pictures.figures,
        "sources": sources.sources,
        "banner_sources": sources.banner_sources,
        "sessions_of": scheduled_of,
        "ticking_words": clock.ticking_words,
        "local_time": local_time,
    }
    made.filters |= {
        "date": date,
        "iso": iso,
        "capfirst": capfirst,
        "intcomma": intcomma,
        "linebreaksbr": linebreaksbr,
        "urlencode": urlencode,
        "paragraphs": words.paragraphs,
        "logo_of": words.logo_of,
        "logo_sources": words.logo_sources,
        "favicon_of": words.favicon_of,
        "touch_icon_of": words.touch_icon_of,
        "theme_of": words.theme_of,
        "headed_paragraphs": words.headed_paragraphs,
        "initial": initial,
        "tint": tint,
        "isolate": languages.isolate,
        "isolated": people.isolated,
        "may_invite": may_invite,
        "ago": reading.ago,
        "full_time": reading.full_time,
        "excerpt": reading.excerpt,
        "focus": pictures.focus,
        "until": clock.until,
        "lasting": clock.lasting,
        "length_of_time": clock.format_duration,
        "day_time": clock.day_time,
        "sentence": sentence,
    }
    return made


@cache
def _in_language(_language: str | None, translate: Callable[..., Text], *texts: str) -> Text:
    return translate(*texts)


def once_per_language(translate: Callable[..., Text]) -> Callable[..., Text]:
    """A function that translates the texts of templates, which are few, each once."""
    return lambda *texts: _in_language(get_language(), translate, *texts)


@once_per_language
def translated(text: str) -> Markup:
    """A text in the current language, as HTML."""
    return Markup(gettext(text) % {})  # noqa: S704 (the catalogue's)


@lru_cache(4096)
def url(name: str, *args: str | int) -> str:
    """The address of a page by name."""
    return reverse(name, args=args)


def date(moment: datetime, form: str) -> str:
    """A time in the reader's zone, by web/formats."""
    return format_moment(moment, form)


def iso(moment: datetime) -> str:
    """A time for HTML's `datetime`."""
    return timezone.localtime(moment).isoformat()


def local_time() -> str:
    """The current time in the reader's zone."""
    return format_moment(timezone.now(), "DATETIME_FORMAT")
