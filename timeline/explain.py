"""Explains a reader's home: what serves the next page at what cost, and why an item is in it or not. Writes nothing."""

import time
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from relations import rules
from storage.connections import count_trips, fetch
from storage.window import without_renewal
from timeline.fold import FOLDED
from timeline.home import HomeWalk
from timeline.models import Delivery
from timeline.rules import followed_tags_of_post, kind_conditions, original_shown, presence_conditions, reposts_wanted
from timeline.senders import TAGGED, Scope
from timeline.truth import MissReason

SENTENCES = {
    **dict(MissReason.choices),
    "windows": gettext_lazy("The windows serve the whole page."),
    "shown": gettext_lazy("The reader sees it at home."),
    "not_shown": gettext_lazy("The reader doesn't see it at home."),
    "absent": gettext_lazy("This post doesn't exist."),
    "lost": gettext_lazy("It's missing from the windows. Run `manage.py timeline_check --repair`."),
    "folded": gettext_lazy("It's hidden as a repeat: home shows the original just below, or a newer repost."),
    "status": gettext_lazy("It isn't published."),
    "reply": gettext_lazy("It's a reply. Home doesn't show replies."),
    "mentioned": gettext_lazy("It's a private mention. Home doesn't show private mentions."),
    "self": gettext_lazy("Only its author can see it."),
    "original": gettext_lazy("It reposts a post that the reader can't see, or by someone they mute."),
    "not_followed": gettext_lazy("The reader doesn't follow its author."),
    "blocked": gettext_lazy("The reader blocks its author."),
    "blocked_by": gettext_lazy("Its author blocks the reader."),
    "muted": gettext_lazy("The reader mutes its author."),
    "exclusive": gettext_lazy("Its author is in one of the reader's lists that are hidden from home."),
    "reposts_left_out": gettext_lazy("The reader hides reposts by its author."),
    "inactive": gettext_lazy("Its author is suspended or deactivated."),
    "mutuals": gettext_lazy("It's for mutual follows, and its author doesn't follow the reader."),
}
REASONS = {"own": gettext_lazy("their own post"), "following": gettext_lazy("following")}
"""Why a reader sees an item at home, but for its hashtag."""
OF_OTHERS = {
    "not_followed": rules.follows(rules.READER, "i.sender_id"),
    **rules.wanted_at_home_conditions(rules.READER, "i.sender_id"),
    "reposts_left_out": reposts_wanted(),
    **presence_conditions(),
}
CONDITIONS = {
    **kind_conditions(),
    "original": original_shown("i"),
    **{name: f"(i.sender_id = %(reader)s OR {text})" for name, text in OF_OTHERS.items()},
}
OF_TAGGED = {"inactive", *rules.wanted_at_home_conditions("", "")}
"""The conditions that also hide an item found by a hashtag alone (rules.welcome)."""
VERDICT = f"""
    {TAGGED.with_tags_clause()}
    SELECT s.username, ARRAY[{", ".join(CONDITIONS.values())}], {followed_tags_of_post("i.id")} IS NOT NULL
    FROM items_item i JOIN accounts_user s ON s.id = i.sender_id WHERE i.id = %(item)s
"""


class ExplanationPart(NamedTuple):
    """One part of an explanation: its title, keys of `SENTENCES`, and facts (None: unknown)."""

    title: str
    words: list[str]
    facts: dict[str, Any]

    @property
    def sentences(self) -> list[Any]:
        """The sentences of `words`, translated."""
        return [SENTENCES[word] for word in self.words]


def explain_home(reader: User, *, item_id: int | None = None) -> dict[str, ExplanationPart]:
    """Explain a home, and optionally an item in it."""
    parts = {} if item_id is None else {"item": _item(reader, item_id)}
    walk, words, costs = _page(reader)
    truth = walk.findings.truth
    facts = {
        _("active"): reader.is_active,
        _("level"): reader.level,
        _("last seen"): reader.last_seen_at,
        _("following"): reader.following_count,
        _("outboxes that pages merge"): len(truth.outboxes) if truth else None,
        _("windows to be built"): len(walk.findings.missing),
        _("pending"): len(truth.pending) if truth else None,
    }
    page = ExplanationPart(_("The next page"), words, costs)
    return parts | {"next_page": page, "reader": ExplanationPart(_("The reader"), [], facts)}


def _page(reader: User, last_id: int | None = None, limit: int = 20) -> tuple[HomeWalk, list[str], dict[str, Any]]:
    begin = time.perf_counter()
    with count_trips() as asked, without_renewal():
        walk = HomeWalk.of(reader, Scope.home_of(reader), limit, last_id)
        walk.fill()
    facts = {
        _("sources"): ",".join(sorted(walk.findings.sources)),
        _("posts on the page"): len(walk.shown[:limit]),
        _("statements"): asked.statements,
        _("round trips to Redis"): asked.round_trips,
        _("milliseconds"): round(1000 * (time.perf_counter() - begin), 2),
    }
    missed = walk.findings.missed if "sql" in walk.findings.sources else None
    return walk, [missed or "windows"], facts


def _item(reader: User, item_id: int) -> ExplanationPart:
    """Explain whether the reader's home shows an item.

    Makes the page before it reads the item's facts: the page may lack what is published meanwhile.
    """
    title = _("Post %(id)s") % {"id": item_id}
    walk, words, facts = _page(reader, item_id + 1, 1)
    found = fetch(VERDICT, {"reader": reader.pk, "item": item_id})
    if not found:
        return ExplanationPart(title, ["not_shown", "absent"], {})
    ((sender, verdicts, is_tagged),) = found
    delivery = Delivery.objects.filter(pk=item_id).first()
    facts |= {
        _("author"): f"@{sender}",
        _("delivery pending"): delivery is not None,
        _("given up"): delivery is not None and delivery.parked_at is not None,
    }
    for shown in walk.shown:
        if shown.id == str(item_id):
            reason = str(REASONS.get(shown.reason or "", shown.reason))
            return ExplanationPart(title, ["shown", *words], facts | {_("reason"): reason})
    reasons = [name for name, is_met in zip(CONDITIONS, verdicts, strict=True) if not is_met]
    if is_tagged:
        reasons = [name for name in reasons if name in OF_TAGGED]
    if not reasons:
        reasons = ["folded" if walk.folds.get(item_id) == FOLDED else "lost"]
    return ExplanationPart(title, ["not_shown", *reasons], facts)
