"""Decisions and reasons in sentences."""

import re
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.models import User
from accounts.people import badge_of, badged_username
from items.models import Status
from items.pages.reading import full_time
from moderation.models import CaseState, Decision, PictureAction, SenderKind, Verb

NUMBER = re.compile(r"\d+")

# `what`: an item or live session. `whom`: the user concerned.
SENTENCES: dict[str, Any] = {
    Verb.HOLD: gettext_lazy("{who} held {what} by {whom} for review"),
    Verb.OPEN: gettext_lazy("{who} opened a case about {what} by {whom}"),
    Verb.APPROVE: gettext_lazy("{who} approved {what} by {whom}"),
    Verb.REJECT: gettext_lazy("{who} rejected {what} by {whom}"),
    Verb.END: gettext_lazy("{who} ended {what} by {whom}"),
    Verb.WARN: gettext_lazy("{who} warned {whom}"),
    Verb.BAN: gettext_lazy("{who} suspended {whom}"),
    Verb.UNBAN: gettext_lazy("{who} lifted the suspension of {whom}"),
    Verb.HIDE: gettext_lazy("{who} hid pictures in {what} by {whom}"),
    Verb.SHOW: gettext_lazy("{who} showed pictures in {what} by {whom} again"),
    Verb.BLOCK: gettext_lazy("{who} saved the blocked picture “{what}”"),
    Verb.UNBLOCK: gettext_lazy("{who} unblocked the picture “{what}”"),
    Verb.UNCARD: gettext_lazy("{who} removed the link preview of {what}"),
    Verb.REFUSE: gettext_lazy("{who} turned off previews of “{what}”"),
    Verb.ACCEPT: gettext_lazy("{who} turned previews of “{what}” back on"),
    Verb.UNWORD: gettext_lazy("{who} removed the word rule “{what}”"),
    Verb.READ: gettext_lazy("{who} read {what} by {whom}"),
    Verb.GRANT: gettext_lazy("{who} accepted an appeal by {whom}"),
    Verb.DENY: gettext_lazy("{who} rejected an appeal by {whom}"),
}
OF_ACCOUNT = {
    Verb.APPROVE: gettext_lazy("{who} approved the account {whom}"),
    Verb.REJECT: gettext_lazy("{who} rejected the account {whom}"),
}
"""Decisions about an account."""
LISTED = {
    SenderKind.BLACK: gettext_lazy("{who} set {whom} to always review"),
    SenderKind.WHITE: gettext_lazy("{who} marked {whom} as trusted"),
    SenderKind.BAN: gettext_lazy("{who} suspended {whom}"),
}
UNLISTED = {
    SenderKind.BLACK: gettext_lazy("{who} took {whom} off always review"),
    SenderKind.WHITE: gettext_lazy("{who} no longer trusts {whom}"),
    SenderKind.BAN: gettext_lazy("{who} lifted the suspension of {whom}"),
}
NAMED = (Verb.WORD, Verb.UNWORD, Verb.BLOCK, Verb.UNBLOCK, Verb.REFUSE, Verb.ACCEPT)
"""Decisions with a rule's name as their note."""
FACTS = {
    "status": gettext_lazy("status"),
    "case": gettext_lazy("case"),
    "list": gettext_lazy("rule"),
    "is_active": gettext_lazy("active"),
    "text": gettext_lazy("word or phrase"),
    "texts": gettext_lazy("words"),
    "whole": gettext_lazy("whole words only"),
    "is_enabled": gettext_lazy("enabled"),
    "note": gettext_lazy("note"),
    "pictures": gettext_lazy("pictures"),
    "action": gettext_lazy("action"),
    "distance": gettext_lazy("difference"),
    "link": gettext_lazy("link"),
}
"""Names of what a decision changes."""
VALUES: dict[Any, Any] = {
    None: gettext_lazy("none"),
    True: gettext_lazy("yes"),
    False: gettext_lazy("no"),
    **{choice.value: choice.label for choices in (CaseState, SenderKind, Status, PictureAction) for choice in choices},
}


# --- The log ---------------------------------------------------------------------------------------------
def sentence(decision: Decision) -> SafeString:
    """A decision as a sentence with links."""
    words: Any = SENTENCES.get(decision.verb, decision.verb)  # a newer version may have other verbs
    if decision.verb == Verb.LIST:
        words = LISTED[SenderKind((decision.after or {})["list"])]
    elif decision.verb == Verb.UNLIST:
        words = UNLISTED[SenderKind((decision.before or {})["list"])]
    elif decision.verb == Verb.WARN and (decision.item_id or decision.session_id):
        words = gettext_lazy("{who} warned {whom} about {what}")
    elif decision.verb in OF_ACCOUNT and not decision.item_id and not decision.session_id:
        words = OF_ACCOUNT[Verb(decision.verb)]
    elif decision.verb == Verb.WORD:
        words = _word_rule_sentence(decision)
    if decision.by is None:  # Chinese needs a space after a handle, but not here
        words = re.sub(r"\{who\} (?=[^\x00-\x7f])", "{who}", str(words))
    what = decision.note if decision.verb in NAMED else _subject(decision) or (decision.after or {}).get("link", "")
    return format_html(str(words), who=_actor_name(decision.by), what=what, whom=_target_link(decision.user))


def why(decision: Decision) -> str:
    """The reasons, or ""."""
    if decision.verb in NAMED:
        return ""
    if decision.verb == Verb.READ:
        return _("Case %(id)s") % {"id": decision.note} if decision.note else ""
    if decision.verb == Verb.HOLD and decision.by is None:
        return "; ".join(explain_reason(reason) for reason in decision.note.split("; "))
    rule = _("the rule “%(rule)s”") % {"rule": decision.rule.text} if decision.rule else ""
    until = _("until %(time)s") % {"time": full_time(decision.until)} if decision.until else ""
    return "; ".join(filter(None, (until, rule, decision.text, decision.note)))


def changes(decision: Decision) -> str:
    """Changed facts, one a line."""
    before, after = decision.before or {}, decision.after or {}
    lines = []
    for fact, name in FACTS.items():
        old, new = before.get(fact), after.get(fact)
        if old != new and fact in after:
            line = _("%(name)s: %(before)s → %(after)s") if fact in before else _("%(name)s: %(after)s")
            lines.append(line % {"name": name, "before": _format_value(old), "after": _format_value(new)})
    return "\n".join(lines)


def _word_rule_sentence(decision: Decision) -> str:
    before, after = decision.before, decision.after or {}
    if "texts" in after:
        count = len(after["texts"])
        return ngettext("{who} added %(count)s word rule", "{who} added %(count)s word rules", count) % {"count": count}
    if before is None:
        return _("{who} added the word rule “{what}”")
    if before["is_enabled"] == after["is_enabled"]:
        return _("{who} changed the word rule “{what}”")
    return (
        _("{who} enabled the word rule “{what}”") if after["is_enabled"] else _("{who} disabled the word rule “{what}”")
    )


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(VALUES.get(value, value))


def _actor_name(user: User | None) -> SafeString | str:
    return format_html("@{}", badged_username(user)) if user else _("The site")


def _target_link(user: User | None) -> SafeString | str:
    if user is None:
        return ""
    address = reverse("admin:accounts_user_change", args=[user.pk])
    return format_html('<a href="{}">@{}</a>{}', address, user.username, badge_of(user))


def _subject(decision: Decision) -> SafeString:
    if decision.item_id:
        address = reverse("admin:items_item_change", args=[decision.item_id])
        return format_html('<a href="{}">{}</a>', address, _("post %(id)s") % {"id": decision.item_id})
    if decision.session_id:
        address = reverse("admin:live_livesession_change", args=[decision.session_id])
        return format_html('<a href="{}">{}</a>', address, _("live session %(id)s") % {"id": decision.session_id})
    return SafeString()


# --- Reasons ---------------------------------------------------------------------------------------------
REASONS = {
    "words": gettext_lazy("words: %(words)s"),
    "picture": gettext_lazy("a blocked picture: %(words)s"),
    "captions": gettext_lazy("the captions couldn't be read"),
    "sender": gettext_lazy("the author's posts are always reviewed"),
    "resubmitted": gettext_lazy("edited after being rejected"),
    "moderator": gettext_lazy("opened by %(words)s"),
}
"""Reasons without numbers, by code."""


def explain_reason(reason: str) -> str:
    """A case's reason (`code: words`, of rules.Reason) for readers."""
    code, _colon, words = reason.partition(": ")
    if code in REASONS:
        return str(REASONS[code]) % {"words": words}
    numbers = [int(number) for number in NUMBER.findall(words)]
    match code, numbers:
        case "rate", [items, minutes]:
            return _("more than %(items)d posts in %(minutes)d minutes") % {"items": items, "minutes": minutes}
        case "same", [times]:
            return _("the same text more than %(times)d times in an hour") % {"times": times}
        case "link", [days]:
            return _("a link from an account younger than %(days)d days") % {"days": days}
        case "reports", [readers]:
            return _("reports from %(readers)d readers") % {"readers": readers}
    return reason
