"""The site's terms and privacy policy: the admin's words, or a draft that says what this software does."""

from datetime import datetime
from typing import NamedTuple

from django.utils.translation import gettext as _

from accounts.about.models import SiteSettings
from accounts.about.site import current


class LegalText(NamedTuple):
    """A text, and when the admin last changed the site. None: it is the draft."""

    text: str
    changed_at: datetime | None


def terms() -> LegalText:
    """The terms of the site."""
    return _text_of("terms", draft_of_terms())


def privacy() -> LegalText:
    """The privacy policy of the site."""
    return _text_of("privacy", draft_of_privacy())


def _text_of(column: str, draft: str) -> LegalText:
    row = SiteSettings.objects.exclude(**{column: ""}).values_list(column, "changed_at").first()
    return LegalText(*row) if row else LegalText(draft, None)


def draft_of_terms() -> str:
    """Terms for a site that has written none, in the active language."""
    return "\n\n".join(
        [
            _("# Using this site"),
            _("You can use this site if you follow its rules and the law. The rules are on the page About this site."),
            _("# Your posts"),
            _("Your posts stay yours. You let this site store them and show them to the people you choose."),
            _("Post only what you have the right to post. You answer for it."),
            _("# Moderation"),
            _("Moderators can hide posts, remove pictures and suspend accounts that break the rules. They say why."),
            _("# No guarantee"),
            _("This site can be down, and data can get lost. Download your data from time to time."),
            _("# Leaving"),
            _("You can delete your account in the settings at any time."),
            *_contact(),
        ]
    )


def draft_of_privacy() -> str:
    """A privacy policy for a site that has written none, in the active language."""
    return "\n\n".join(
        [
            _("# What we store"),
            _(
                "Your account: your username, display name, bio, pictures, and your email address if you give one. We "
                "store your password only as a hash, from which nobody can read it."
            ),
            _(
                "What you post, with the time. Anyone can see public posts. Posts for fewer people and private "
                "mentions aren't encrypted: the people who run this server are able to read them."
            ),
            _("What you do: whom you follow, mute or block, your lists, likes, bookmarks, votes and private notes."),
            _(
                "Where you're logged in: the browser or app, its IP address and the time, until you log out. You can "
                "see this in the settings and end any login."
            ),
            _(
                "What you opened and were shown recently, so that Discover fits you and doesn't repeat itself. You can "
                "turn off the history in the settings."
            ),
            _(
                "If you turn on push notifications: an address at your browser's push service. What we send there is "
                "encrypted."
            ),
            _("# Pictures and videos"),
            _(
                "We remove the place and other hidden data from pictures and videos. Anyone who has the address of a "
                "file can open it."
            ),
            _("# Cookies"),
            _(
                "Cookies keep you logged in, and remember your language, time zone and theme. There are no ads and no "
                "trackers."
            ),
            _("# Who else sees it"),
            _(
                "We sell nothing. Public posts are on the web: search engines and apps can read them. In the settings "
                "you can ask search engines to leave you out. An app that you log in with sees what you allow."
            ),
            _("When a public post has a link, our server opens that page to show its title and picture."),
            _("# How long"),
            _(
                "Posts stay until you delete them. Their files and old notifications are deleted after a while, "
                "backups later."
            ),
            _("# Your choice"),
            _("You can download all your data and delete your account in the settings."),
            _(
                "If you delete your account, your posts, likes and follows disappear. What stays is an unreadable code "
                "of your username, so that nobody can pretend to be you, and what moderators decided."
            ),
            *_contact(),
        ]
    )


def _contact() -> list[str]:
    here = current()
    names = [name for name in (here.contact_email, here.contact_username and f"@{here.contact_username}") if name]
    return [_("# Contact"), " · ".join(names)] if names else []
