"""The page to act without a report, on items, live sessions or users chosen in a list."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import review
from accounts.models import User
from accounts.review import Subject
from items.models import Item
from items.pages.reading import excerpt
from media import attaching
from moderation import actions, links, pictures, rules, senders, subjects
from moderation.forms import GroundsForm
from moderation.models import Case, ReplyTemplate, SenderKind, SenderRule
from moderation.reading import log_reading, readable
from web.rest import parse_id

AT_ONCE = 100
"""Rows per request. Each takes a transaction or two."""


@dataclass(frozen=True, slots=True)
class Target:
    """An item or live session, or (`subject` None) a user."""

    user: User
    subject: Subject | None
    item: Item | None

    @property
    def about(self) -> dict[str, int]:
        """The subject, as arguments for moderation.actions."""
        assert self.subject is not None  # noqa: S101 (users have verbs of their own)
        return {"item_id": self.item.pk} if self.item else {"session_id": self.subject.id}

    @property
    def words(self) -> str:
        """The beginning of title and text. "" for a user."""
        return excerpt(" ".join(filter(None, (self.subject.title, self.subject.text))), 120) if self.subject else ""


@dataclass(frozen=True, slots=True)
class RowKind:
    """A kind of rows to choose."""

    name: str
    permission: str
    model: str
    verbs: Sequence[str]


KINDS = [
    RowKind(
        "items",
        "items.view_item",
        "admin:items_item",
        ("reject", "warn", "limit", "ban", "hold", "hide", "show", "uncard", "open"),
    ),
    RowKind(
        "sessions",
        "live.view_livesession",
        "admin:live_livesession",
        ("end", "reject", "warn", "limit", "ban", "hold", "open"),
    ),
    RowKind("users", "accounts.view_user", "admin:accounts_user", ("warn", "limit", "ban", "unban")),
]
LABELS = {
    "hold": gettext_lazy("Hold for review"),
    "reject": gettext_lazy("Remove"),
    "hide": gettext_lazy("Hide the pictures"),
    "show": gettext_lazy("Show the pictures again"),
    "uncard": gettext_lazy("Remove the link preview"),
    "end": gettext_lazy("End"),
    "limit": gettext_lazy("Limit"),
    "ban": gettext_lazy("Suspend"),
    "unban": gettext_lazy("Lift the suspension"),
    "warn": gettext_lazy("Warn"),
    "open": gettext_lazy("Open a case"),
}
MEANINGS = {
    "hold": gettext_lazy("Only the author can see it until a moderator approves it. It waits in the queue."),
    "reject": gettext_lazy(
        "Only the author can see it, marked as removed, and reads why. They can appeal. You can publish it again "
        "in its case."
    ),
    "hide": gettext_lazy(
        "The post stays up without its pictures. Their files go offline at once. The author gets a "
        "notification with your words below, and can appeal."
    ),
    "show": gettext_lazy("Hidden pictures are back, under new addresses."),
    "uncard": gettext_lazy(
        "The preview goes from this post and from all others with the same link. The link stays. This can't be undone."
    ),
    "end": gettext_lazy(
        "A live session ends at once and becomes a replay. An upcoming one is cancelled. This can't be undone."
    ),
    "limit": gettext_lazy(
        "Each later post waits for a moderator before others see it. They read why, and can appeal. To end it, remove "
        "their account rule."
    ),
    "ban": gettext_lazy(
        "They're logged out, and their profiles and posts are hidden until the time below, or until you lift the "
        "suspension. They get an email, and can appeal. The posts and live sessions you selected are removed. Staff "
        "can't be suspended."
    ),
    "unban": gettext_lazy("They can log in again, and their posts are back. Removed posts stay removed."),
    "warn": gettext_lazy(
        "They get a notification with your words below and the beginning of what you selected, and can appeal. "
        "Nothing else changes."
    ),
    "open": gettext_lazy("It waits in the queue for a decision. Until then nothing changes."),
}
DONE: dict[str, Callable[[int], str]] = {
    "hold": lambda n: ngettext("%(count)d held for review.", "%(count)d held for review.", n),
    "reject": lambda n: ngettext("%(count)d removed.", "%(count)d removed.", n),
    "hide": lambda n: ngettext("Pictures of %(count)d post hidden.", "Pictures of %(count)d posts hidden.", n),
    "show": lambda n: ngettext(
        "Pictures of %(count)d post shown again.", "Pictures of %(count)d posts shown again.", n
    ),
    "uncard": lambda n: ngettext("%(count)d link preview removed.", "%(count)d link previews removed.", n),
    "end": lambda n: ngettext("%(count)d live session ended.", "%(count)d live sessions ended.", n),
    "limit": lambda n: ngettext("%(count)d user limited.", "%(count)d users limited.", n),
    "ban": lambda n: ngettext("%(count)d user suspended.", "%(count)d users suspended.", n),
    "unban": lambda n: ngettext("Suspension lifted for %(count)d user.", "Suspension lifted for %(count)d users.", n),
    "warn": lambda n: ngettext("%(count)d user warned.", "%(count)d users warned.", n),
    "open": lambda n: ngettext("%(count)d case opened.", "%(count)d cases opened.", n),
}
LEFT: dict[str, Callable[[int], str]] = {
    "hold": lambda n: ngettext(
        "%(count)d not changed: others can't see it anyway.",
        "%(count)d not changed: others can't see them anyway.",
        n,
    ),
    "reject": lambda n: ngettext(
        "%(count)d not changed: already removed or deleted.",
        "%(count)d not changed: already removed or deleted.",
        n,
    ),
    "hide": lambda n: ngettext("%(count)d post has no picture to hide.", "%(count)d posts have no picture to hide.", n),
    "show": lambda n: ngettext("%(count)d post has no hidden picture.", "%(count)d posts have no hidden picture.", n),
    "uncard": lambda n: ngettext("%(count)d post has no link preview.", "%(count)d posts have no link preview.", n),
    "end": lambda n: ngettext("%(count)d was already over.", "%(count)d were already over.", n),
    "limit": lambda n: ngettext(
        "%(count)d user was already limited or suspended.", "%(count)d users were already limited or suspended.", n
    ),
    "ban": lambda n: ngettext("%(count)d user was already suspended.", "%(count)d users were already suspended.", n),
    "unban": lambda n: ngettext("%(count)d user wasn't suspended.", "%(count)d users weren't suspended.", n),
    "warn": lambda n: ngettext(
        "%(count)d user not warned: their account is inactive, so they wouldn't see it.",
        "%(count)d users not warned: their accounts are inactive, so they wouldn't see it.",
        n,
    ),
    "open": lambda n: ngettext(
        "%(count)d not changed: deleted, or there's already an open case.",
        "%(count)d not changed: deleted, or there's already an open case.",
        n,
    ),
    "barred": review.not_judged_message,
    "staff": lambda n: ngettext(
        "%(count)d user not suspended: staff, or yourself.", "%(count)d users not suspended: staff, or yourself.", n
    ),
}


DONE_PICTURES: dict[str, Callable[[int], str]] = {
    "hide": lambda n: ngettext("%(count)s picture hidden.", "%(count)s pictures hidden.", n),
    "show": lambda n: ngettext("%(count)s picture shown again.", "%(count)s pictures shown again.", n),
}


class ActForm(GroundsForm):
    """An action, its grounds and its note."""

    verb = forms.ChoiceField(error_messages={"required": gettext_lazy("Choose an action.")})

    def __init__(self, verbs: Sequence[str], data: Any = None) -> None:
        super().__init__(data)
        verb = self.fields["verb"]
        assert isinstance(verb, forms.ChoiceField)  # noqa: S101 (for the type checker)
        verb.choices = [(name, LABELS[name]) for name in verbs]


def act_on_chosen(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Ask what to do with the chosen rows."""
    kind, ids = _requested_rows(request)
    by = request.user
    view, change = kind.permission, kind.permission.replace(".view_", ".change_")
    may_see = by.has_perm(view) or by.has_perm(change)
    if not isinstance(by, User) or not by.has_perm("moderation.decide_case") or not may_see:
        raise PermissionDenied
    targets = _targets(kind, ids, by)
    back = reverse(f"{kind.model}_change", args=ids) if len(ids) == 1 else reverse(f"{kind.model}_changelist")
    if not targets:
        messages.warning(request, _("Nothing changed: what you selected is gone."))
        return redirect(f"{kind.model}_changelist")
    banned = set(
        SenderRule.objects.filter(kind=SenderKind.BAN, user__in=[target.user.pk for target in targets]).values_list(
            "user_id", flat=True
        )
    )
    verbs = [verb for verb in kind.verbs if verb != "unban" or banned]
    form = ActForm(verbs, request.POST or None)
    if form.is_valid():
        verb = form.cleaned_data["verb"]
        _report_outcome(request, verb, _apply_to_all(verb, targets, by, form, _chosen_pictures(request)))
        return redirect(back)
    for target in targets:
        if target.item:
            log_reading(target.item, by)
    context = site.each_context(request) | {
        "title": _("Moderate"),
        "opts": Case._meta,
        "form": form,
        "templates": ReplyTemplate.objects.all(),
        "targets": targets,
        "banned": banned,
        **_media(targets),
        "users": len({target.user.pk for target in targets}),
        "kind": kind,
        "verbs": [(verb, LABELS[verb], MEANINGS[verb]) for verb in verbs],
        "back": back,
    }
    return TemplateResponse(request, "admin/moderation/case/act.html", context)


def _chosen_pictures(request: HttpRequest) -> list[int] | None:
    ids = [parse_id(text) for text in request.POST.getlist("picture")[:AT_ONCE]]
    return [number for number in ids if number is not None] if ids else None


def _media(targets: list[Target]) -> dict[str, Any]:
    """The media of the chosen item. Empty unless it is the only chosen row."""
    item = targets[0].item if len(targets) == 1 else None
    media = attaching.media_by_item([item.pk]).get(item.pk, []) if item else []
    return {"media": media, "is_veiled": item is not None and item.is_sensitive}


def _requested_rows(request: HttpRequest) -> tuple[RowKind, list[int]]:
    for kind in KINDS:
        if kind.name in request.GET:
            ids = [parse_id(text) for text in request.GET[kind.name].split(",")[:AT_ONCE]]
            return kind, [number for number in ids if number is not None]
    raise PermissionDenied


def _targets(kind: RowKind, ids: list[int], by: User) -> list[Target]:
    if kind.name == "users":
        return [Target(user, None, None) for user in User.objects.filter(pk__in=ids).order_by("pk")]
    if kind.name == "sessions":
        return [Target(subject.author, subject, None) for subject in review.sessions.find(ids).values()]
    items = readable(Item.objects.filter(pk__in=ids), by).select_related("sender", "root", "link_card").order_by("pk")
    return [Target(item.sender, subjects.of_item(item), item) for item in items]


def _apply_to_all(verb: str, targets: list[Target], by: User, form: ActForm, chosen: list[int] | None) -> Counter[str]:
    """Counts successes (`done`) and failures by reason (a key of LEFT)."""
    found: Counter[str] = Counter()
    warned: set[int] = set()
    for target in targets:
        if verb in ("ban", "limit", "warn", "unban"):
            if target.user.pk in warned:
                continue
            warned.add(target.user.pk)
        try:
            found["done" if _apply(verb, target, by, form, chosen) else verb] += 1
        except review.JudgeError:
            found["barred"] += 1
        except PermissionError:
            found["staff"] += 1
    if verb == "ban":  # items of staff stay, because staff is not banned
        for target in targets:
            if target.subject and senders.may_be_banned(target.user, by):
                note = form.cleaned_data["note"]
                actions.reject_by_hand(by=by, note=note, grounds=form.grounds, **target.about)
    return found


def _apply(verb: str, target: Target, by: User, form: ActForm, chosen: list[int] | None) -> bool:
    note, grounds = form.cleaned_data["note"], form.grounds
    match verb:
        case "hide" | "show":
            assert target.item is not None  # noqa: S101 (verbs of items alone)
            pictured = {"item": target.item, "by": by, "ids": chosen, "note": note}
            changed = pictures.hide(**pictured, grounds=grounds) if verb == "hide" else pictures.show(**pictured)
            return changed > 0
        case "uncard":
            assert target.item is not None  # noqa: S101 (a verb of items alone)
            card = target.item.link_card
            return card is not None and links.remove_card(card=card, by=by, item=target.item, note=note)
        case "hold":
            return actions.hold_by_hand(by=by, note=note, **target.about)
        case "reject":
            return actions.reject_by_hand(by=by, note=note, grounds=grounds, **target.about)
        case "open":
            return actions.open_by_hand(by=by, note=note, **target.about) is not None
        case "end":
            return actions.end_session(by=by, note=note, grounds=grounds, **target.about)
    return _apply_to_user(verb, target, by, form)


def _apply_to_user(verb: str, target: Target, by: User, form: ActForm) -> bool:
    note, grounds = form.cleaned_data["note"], form.grounds
    match verb:
        case "ban":
            until = form.cleaned_data["until"]
            return senders.ban(user=target.user, by=by, reason=note, grounds=grounds, until=until)
        case "limit":
            return senders.limit(user=target.user, by=by, reason=note, grounds=grounds)
        case "unban":
            return senders.unban(user=target.user, by=by, reason=note)
    about = rules.item_text(target.item) if target.item else target.words
    return actions.warn(user=target.user, by=by, grounds=grounds, note=note, about=about, item=target.item)


def _report_outcome(request: HttpRequest, verb: str, found: Counter[str]) -> None:
    done = found.pop("done", 0)
    if done:
        messages.success(request, DONE[verb](done) % {"count": done})
    for reason, count in found.items():
        messages.warning(request, LEFT[reason](count) % {"count": count})
