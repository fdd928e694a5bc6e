import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import transaction
from django.http import HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe
from django_htmx.http import reswap, trigger_client_event

from accounts.access import member_act, member_form, member_page
from accounts.models import User
from items import actions, idempotency
from items.attachments import attachments
from items.bodies import ItemBody, Sender
from items.conversations.conversations import mark_read, people_of, place_of
from items.conversations.recipients import may_message, requests_sentence
from items.finding import item_row, own_item, quote_of_own
from items.hydrate import hydrate
from items.likes.saved import SavedKind, saved_page
from items.models import Item, ScheduledPost, Status, Visibility
from items.pages import scheduled_views
from items.pages.bubbles import bubbles
from items.pages.cards import Cards
from items.pages.forms import EditForm, HomeForm, ItemForm, PartForm
from items.pages.open_pages import OpenPage, open_page
from items.pages.previews import item_preview, person_preview
from items.profiles.pins import is_pinnable, pinned_ids, pinned_items
from items.profiles.profile import (
    answered_senders,
    find_item,
    own_replies_page,
    pictured_page,
    profile_page,
    visible_item,
)
from items.quotes import NotQuotableError, may_quote, not_allowed_text, quotes_page
from items.scheduling import MOST, ScheduledCapError, publish_or_wait
from items.text import TEXT_LENGTH, ContentError, mentions
from items.threads.chains import LONGEST, chain_below
from items.threads.hiding import (
    has_hidden_replies,
    hidden_page,
    hide_reply,
    is_reply_hidden,
    is_taken_out,
    own_root_id,
    show_reply,
)
from items.threads.muting import mute_thread, muted_among, unmute_thread
from items.threads.replying import NotRepliableError, not_repliable_text
from items.threads.threads import ancestors, thread_page
from items.versions import KEPT, Version, versions_of
from items.viewing import announce_view
from media.actions import PICTURES_AN_ITEM, MediaError
from media.attaching import unused_media
from media.objects import object_from_row
from relations.visibility import profile_relation, visible_user
from web import rates
from web.pages import (
    INVALID,
    LOCAL_ADDRESS,
    PageRequest,
    View,
    ids_parameter,
    is_prefetch,
    limited,
    next_page,
    redirect_next,
    redirect_to,
    show,
    wants_part,
    with_undo,
    with_view,
)
from web.refusals import RefusalError
from web.rest import parse_id, position, single_parameter
from web.uploads import some_media_bytes, takes_files

DIALOG, OVER_ID = "over-form", "over-%s"
"""The place of a composer over the page (over.js), and the ids of its fields: the page may have another."""
PROFILE_TABS = {"posts": profile_page, "replies": own_replies_page, "media": pictured_page}


# --- Reading ---------------------------------------------------------------------------------------------
@require_safe
@open_page
def profile(request: PageRequest, username: str, tab: str) -> OpenPage:
    """A tab of a user's profile: `PROFILE_TABS`."""
    person = visible_user(username, request.user)
    last_id = position(request)
    page = PROFILE_TABS[tab](person, request.user, last_id=last_id)
    answered = {} if tab == "media" else answered_senders(page.items, request.user)
    # Pinned posts top the newest page, and are not repeated below.
    has_pins = tab == "posts" and (last_id is None or wants_part(request))
    pinned = pinned_items(person, request.user) if has_pins else []
    ids = {item.id for item in pinned}
    values = [one["value"] for one in person.profile_fields]
    cards = Cards(request.user, [*pinned, *page.items], [person.bio, *values])
    context = {"person": person, "page": page, "is_first": last_id is None, "tab": tab}
    if tab == "media":
        context["grid"] = [item for item in page.items if item.media and not item.is_hidden]
    else:
        context["cards"] = cards.of((item for item in page.items if item.id not in ids), answered=answered)
    if wants_part(request):
        return OpenPage(show(request, "items/_more_grid.html" if tab == "media" else "items/_more.html", context))
    context["pinned"] = cards.of(pinned, keeps_hidden=True) if last_id is None else []
    context["stands"] = profile_relation(person, request.user)
    context["may_message"] = isinstance(request.user, User) and may_message(request.user, person)
    context["bio"] = cards.linked(person.bio)
    context["fields"] = [(one["name"], cards.linked(one["value"])) for one in person.profile_fields]
    if last_id is None:
        context["preview"] = person_preview(person, request.path, f"/@{person.username}/feed.atom", request.user)
    return OpenPage(show(request, "items/profile.html", context), [*pinned, *page.items], [person.pk, *_ids(answered)])


@require_safe
@open_page
def show_item(request: PageRequest, item_id: int) -> OpenPage:
    """One item, with what is above and below."""
    item = visible_item(item_id, request.user)
    last_id = position(request)
    if wants_part(request) and request.GET.get("text") == "whole":
        content = Cards(request.user).content(item.shown, is_whole=True)
        return OpenPage(show(request, "items/_unfolded.html", {"content": content}))
    if wants_part(request) and last_id is None:
        if "in_thread" in request.GET and is_taken_out(item, request.user):
            return OpenPage(HttpResponse(status=204))
        (card,) = Cards(request.user).of([item], answered=answered_senders([item], request.user), keeps_hidden=True)
        return OpenPage(show(request, "items/_item.html", {"card": card}))
    chain = chain_below(item, request.user)
    page = thread_page(item, request.user, last_id=last_id, chain=chain)
    shown = page.items
    if wants_part(request):
        context: dict[str, Any] = {
            "page": page,
            "thread": Cards(request.user, shown).thread(item, page.branches, chain),
        }
        return OpenPage(show(request, "items/_more_replies.html", context))
    higher = ancestors(item, request.user)
    cards = Cards(request.user, [*higher, item, *chain, *shown])
    context = {
        "page": page,
        "is_first": last_id is None,
        "item": item,
        "card": cards.one(item, is_whole=True),
        "chain": cards.of(chain, keeps_hidden=True) if last_id is None else [],
        "thread": cards.thread(item, page.branches, chain),
        "above": cards.of(higher, keeps_hidden=True),
        "form": ItemForm.fresh(item, request.user),
        "people": None,
        "conversation_id": None,
        "is_request": False,
        "has_hidden": has_hidden_replies(item, request.user),
    }
    in_conversation = request.user if item.visibility == Visibility.MENTIONED else None
    if isinstance(in_conversation, User):
        context["people"] = people_of([int(item.id)], in_conversation)[item.id]
        context["conversation_id"], context["is_request"] = place_of(int(item.id), in_conversation)
    if last_id is None and not isinstance(request.user, User):
        context["preview"] = item_preview(item, reverse("item", args=[item.shown.id]))
    response = show(request, "items/item.html", context)
    if request.headers.get("Sec-Fetch-Dest") != "empty":  # a script that renews an open page opens nothing
        announce_view(request, response, item, request.user, replies=[*chain, *shown])
        if isinstance(in_conversation, User) and request.method == "GET" and not is_prefetch(request):
            mark_read(reader=in_conversation, item_id=int(item.id))
    return OpenPage(response, [item, *higher, *chain, *shown])


def _ids(senders: Mapping[str, Sender]) -> list[int]:
    return [int(sender.id) for sender in senders.values()]


@member_page
def menu(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """The menu of a card; without JavaScript a page."""
    entry = visible_item(item_id, reader)
    quoted = entry.shown.quote.item if entry.shown.quote else None
    in_own_thread = own_root_id(entry, reader) is not None
    context = {
        "item": entry,
        "shown": entry.shown,
        "may_quote": may_quote(entry.shown, reader),
        "quotes_own": quoted is not None and quoted.sender.id == str(reader.pk),
        "is_pinned": entry.id in pinned_ids(reader) if is_pinnable_by(entry, reader) else None,
        "is_in_own_thread": in_own_thread,
        "is_reply_hidden": in_own_thread and is_reply_hidden(entry),
        "is_muted": bool(muted_among([entry.shown.id], reader)),
        "is_talking": _takes_part(entry.shown, reader),
        "on": request.GET.get("on", ""),
        "came": _referrer(request),
    }
    return show(request, "items/menu.html", context, part="items/_menu.html")


def _takes_part(item: ItemBody, reader: User) -> bool:
    own = item.sender.id == str(reader.pk) or item.visibility == Visibility.MENTIONED
    return own or item.reply_to is not None or reader.username.lower() in map(str.lower, mentions(item.text))


def _referrer(request: PageRequest) -> str:
    try:
        parts = urlsplit(request.headers.get("Referer", ""))
    except ValueError:
        return reverse("home")
    address = f"{parts.path}{parts.query and '?'}{parts.query}"
    here = parts.netloc == request.get_host() and parts.path != request.path
    return address if here and LOCAL_ADDRESS.match(address) else reverse("home")


def is_pinnable_by(item: ItemBody, reader: User) -> bool:
    """Whether the reader may pin the item."""
    return item.sender.id == str(reader.pk) and is_pinnable(item)


@require_safe
def edits(request: PageRequest, item_id: int) -> HttpResponse:
    """The versions of an item, newest first."""
    item = visible_item(item_id, request.user).shown
    now = Version(item.title, item.content_fields, item.modified_at)
    versions, cards = [now, *versions_of(int(item.id), request.user)], Cards(request.user)
    said = [{"of": version, "content": cards.version(version)} for version in versions]
    context = {"item": item, "versions": said, "kept": KEPT}
    return show(request, "items/edits.html", context)


# --- Publishing ------------------------------------------------------------------------------------------
@member_form
@limited("publish")
@takes_files(some_media_bytes)
def publish(request: PageRequest, reader: User) -> HttpResponse:
    """Publish a post or a reply."""
    if request.method != "POST":
        return _composer(request, reader)
    form = ItemForm(request.POST, request.FILES)
    parts = PartForm.parts_of(request.POST, request.FILES)
    for one in (form, *parts):
        one.store_media(reader)
    if "more" in request.POST:
        return _with_another(request, form, parts)
    spot = _spot(request, form)
    if spot == "over":
        form.auto_id = OVER_ID
    new = _sent(reader, form, parts)
    if isinstance(new, ScheduledPost):
        return scheduled_views.answer(request, new, reader, spot)
    if new is None:
        if quoted_id := parse_id(str(form["quote_of"].value() or "")):
            form.quoted = Cards(reader).quoted(visible_item(quoted_id, reader).shown)
        context = {"form": form, "parts": parts, "next": next_page(request), "spot": spot}
        return show(request, "items/publish.html", context, part="items/_composer.html", status=INVALID)
    if spot == "write":
        return _lead_on(request, new, reader)
    response = _answer_over_page(new, reader) if spot == "over" else _answer_in_place(request, new, reader, spot)
    return trigger_client_event(response, "answered") if new.is_private and new.reply_to_id else response


def _composer(request: PageRequest, reader: User) -> HttpResponse:
    answered_id, quoted_id = position(request, "reply_to"), position(request, "quote_of")
    answered = visible_item(answered_id, reader) if answered_id is not None else None
    quoted = visible_item(quoted_id, reader).shown if quoted_id is not None else None
    if answered and not answered.can_reply:
        messages.info(request, not_repliable_text())
        return redirect_next(request, "item", answered.shown.id)
    if quoted and not may_quote(quoted, reader):
        messages.info(request, not_allowed_text())
        return redirect_next(request, "item", quoted.id)
    form = ItemForm.fresh(answered, reader)
    if quoted:
        form.initial["quote_of"], form.quoted = quoted.id, Cards(reader).quoted(quoted)
        if quoted.visibility != Visibility.PUBLIC:
            form.initial["visibility"] = quoted.visibility
    if shared := _shared(request):
        form.initial["text"] = shared
    form.fields["text"].widget.attrs["autofocus"] = True
    context = {
        "form": form,
        "answered": answered and Cards(request.user).one(answered.shown),
        "next": next_page(request),
    }
    context["spot"] = "slot" if wants_part(request) else "write"
    if wants_part(request) and request.htmx.target == DIALOG:
        context["spot"], form.auto_id = "over", OVER_ID
    return show(request, "items/publish.html", context, part="items/_composer.html")


def _shared(request: PageRequest) -> str:
    """The text that another app shares with the site (feedsite/public/installing.py)."""
    parts = dict.fromkeys(single_parameter(request.GET, f"shared_{name}").strip() for name in ("title", "text", "url"))
    told = [part for part in parts if part and not any(part != other and part in other for other in parts)]
    return "\n".join(told)[:TEXT_LENGTH]


def _with_another(request: PageRequest, form: ItemForm, parts: list[PartForm]) -> HttpResponse:
    """The same composer with one more post, where there is no JavaScript."""
    for one in (form, *parts):
        one.begin_again()
    if len(parts) < LONGEST - 1:
        parts = [*parts, PartForm(prefix=str(len(parts) + 2))]
    context = {"form": form, "parts": parts, "next": next_page(request), "spot": "write"}
    return show(request, "items/publish.html", context)


def _is_ready(reader: User, form: ItemForm, parts: list[PartForm]) -> bool:
    """Whether the forms are valid, and the sender may publish so many posts now. Else one has an error."""
    valid = [one.is_valid() and not one.media_errors for one in (form, *parts)]
    if not all(valid) or not parts:
        return all(valid)
    if form.cleaned_data["publish_at"] or form.cleaned_data["scheduled"]:
        form.add_error("publish_at", _("A thread can't be scheduled. Remove the time first."))
    elif rates.hit("publish", str(reader.pk), len(parts)) is not None:
        form.add_error("text", _("You've posted a lot. Try again in a minute."))
    return not form.errors


def _sent(reader: User, form: ItemForm, parts: list[PartForm]) -> Item | ScheduledPost | None:
    """Publish or schedule the posts of the forms, and return the first. None if a form has an error. Raises
    Item.DoesNotExist.
    """
    if not _is_ready(reader, form, parts):
        return None
    if form.cleaned_data["publish_at"] or form.cleaned_data["scheduled"]:
        return scheduled_views.scheduled_post(reader, form)
    return _published(reader, form, parts)


def _published(reader: User, form: ItemForm, parts: list[PartForm]) -> Item | ScheduledPost | None:
    """Publish the posts of valid forms, or hold a single one until its video is ready. None if a form has an error."""
    answered, quoted = (
        item_row(form.cleaned_data[name], reader) if form.cleaned_data[name] is not None else None
        for name in ("reply_to", "quote_of")
    )
    try:
        return _publish(reader, answered, quoted, form, parts)
    except actions.PlaceError as error:
        _refuse(([form, *parts])[error.place], error.error)
    except ScheduledCapError:
        words = ngettext(
            "You can schedule up to %(count)d post. Delete one first.",
            "You can schedule up to %(count)d posts. Delete one first.",
            MOST,
        )
        form.refuse_media(words % {"count": MOST})
    except RefusalError as error:
        _refuse(form, error)
    return None


def _refuse(form: ItemForm, error: RefusalError) -> None:
    """Put a refusal of a post into its form. Other refusals are raised."""
    if isinstance(error, NotQuotableError | NotRepliableError):
        form.add_error("text", str(error))
    elif isinstance(error, ContentError):
        form.refuse(error)
    else:
        raise error


@member_page
def thread_part(request: PageRequest, reader: User) -> HttpResponse:
    """The composer of one more post of a thread, at the place `number`."""
    number = position(request, "number") or 2
    if number > LONGEST:
        raise BadRequest("A thread has too many posts.")
    return show(request, "items/_part.html", {"part": PartForm(prefix=str(number))})


@member_page
def media_form(request: PageRequest, reader: User) -> HttpResponse:
    """The picture fields of a composer."""
    return show(request, "items/_media.html", {"form": ItemForm.fresh()})


@member_page
def draft_media(request: PageRequest, reader: User) -> HttpResponse:
    """The pictures of a draft (`ids=1,2`) that can still be published, as JSON: id to captions address or null."""
    ids = ids_parameter(request, "ids", PICTURES_AN_ITEM)
    captions = {one.id: one.captions_url for one in map(object_from_row, unused_media(owner_id=reader.pk, ids=ids))}
    return JsonResponse(captions, headers={"Cache-Control": "private, no-store"})


def _spot(request: PageRequest, form: ItemForm) -> str:
    if not wants_part(request) or request.htmx.target == "write":
        return "write"
    if request.htmx.target in ("thread", "over", "message"):
        return str(request.htmx.target)
    return "slot" if form["reply_to"].value() else "home"


def _lead_on(request: PageRequest, new: Item, reader: User) -> HttpResponse:
    """To the page where the writing began, or to the new reply."""
    if new.status == Status.IN_REVIEW:
        _explain_held(request, new, reader)
    elif "message" not in request.POST:
        words = _sent_words(hydrate([new.pk], reader)[0]) if new.is_private else _("Published.")
        leads_to = next_page(request)
        messages.success(request, with_view(words, reverse("item", args=[new.pk])) if leads_to else words)
    return redirect_to(request, next_page(request) or _reply_address(new, reader))


def _answer_over_page(new: Item, reader: User) -> HttpResponse:
    """The dialog over a page empties and closes. The page stays."""
    (shown,) = hydrate([new.pk], reader)
    is_held = new.status == Status.IN_REVIEW
    words = _held_words(shown) if is_held else _sent_words(shown) if new.is_private else _("Published.")
    address = "" if is_held or new.is_private else reverse("item", args=[new.pk])
    return trigger_client_event(HttpResponse(), "written", {"words": words, "address": address}, after="settle")


def _answer_in_place(request: PageRequest, new: Item, reader: User, spot: str) -> HttpResponse:
    is_held = new.status == Status.IN_REVIEW
    if spot == "message":
        return _answer_in_conversation(request, new, reader, _held_words if is_held else None)
    told = _held_words if is_held else _sent_words if new.is_private and spot == "home" else None
    counted = sorted({pk for pk in (new.reply_to_id, new.root_id) if pk})
    shown, *counting = hydrate([new.pk, *counted], reader)
    cards = Cards(request.user, [shown, *counting])
    context: dict[str, Any] = {"card": cards.one(shown), "spot": spot}
    context["counting"] = cards.of(counting, keeps_hidden=True)
    if spot == "home":
        context |= {"form": HomeForm.fresh(reader=reader), "next": reverse("home")}
        context["card"] = None if told else context["card"]
    elif spot == "thread":
        context["form"] = ItemForm.fresh(find_item(new.reply_to_id or 0, reader), reader)
    if spot != "home":
        context["in_thread"] = True
    part = show(request, "items/_published.html" if spot == "home" else "items/_replied.html", context)
    event = "held" if told else "published" if spot == "home" else "replied"
    detail = {"id": shown.id} | ({"words": told(shown)} if told else {})
    return trigger_client_event(part, event, detail, after="settle")


def _answer_in_conversation(
    request: PageRequest, new: Item, reader: User, told: Callable[[ItemBody], str] | None
) -> HttpResponse:
    (shown,) = hydrate([new.pk], reader)
    form = ItemForm.for_message(find_item(new.reply_to_id or 0, reader), reader)
    context = {"bubbles": bubbles([shown], reader), "form": form, "spot": "message"}
    part = show(request, "items/_messaged.html", context)
    if told:
        trigger_client_event(part, "held", {"words": told(shown)}, after="settle")
    return trigger_client_event(part, "messaged", {"id": shown.id}, after="settle")


def _explain_held(request: PageRequest, item: Item, reader: User) -> None:
    messages.info(request, _held_words(hydrate([item.pk], reader)[0]))


def _sent_words(item: ItemBody) -> str:
    return " ".join(filter(None, [_("Sent. Find it under Messages."), requests_sentence(int(item.id))]))


def _held_words(item: ItemBody) -> str:
    return item.review or _("Your post is in review. Others see it once it's approved.")


def _publish(
    reader: User, answered: Item | None, quoted: Item | None, form: ItemForm, parts: list[PartForm]
) -> Item | ScheduledPost:
    post: dict[str, Any] = form.post | {"sender": reader, "reply_to": answered, "quote_of": quoted}

    def publish(key: str) -> Item | ScheduledPost:
        return _publish_thread(post, parts, key) if parts else publish_or_wait(**post, idempotency_key=key)

    try:
        return publish(form.cleaned_data["key"])
    except idempotency.IdempotencyConflictError:
        # The sender changed a sent form: that is another item.
        return publish(uuid.uuid4().hex)


def _publish_thread(post: dict[str, Any], parts: list[PartForm], key: str) -> Item:
    first, common = dict(post), {}
    for name in ("sender", "visibility", "repliable_by"):
        common[name] = first.pop(name)
    language = {"language": first["content"]["language"]} if "language" in first["content"] else {}
    rest = [part.post | {"content": part.post["content"] | language} for part in parts]
    posts = [first, *(one | {"quotable_by": first["quotable_by"]} for one in rest)]
    return actions.publish_thread(**common, posts=posts, idempotency_key=key)[0]


def _reply_address(reply: Item, reader: User) -> str:
    answered = find_item(reply.reply_to_id or 0, reader)
    if answered is None:
        return reverse("item", args=[reply.pk])
    first = thread_page(answered, reader)
    query = "" if str(reply.pk) in {one.id for one in first.items} else f"?last_id={reply.pk - 1}"
    return f"{reverse('item', args=[answered.id])}{query}#item-{reply.pk}"


# --- Liking and reposting --------------------------------------------------------------------------------
def _act_view(do: Callable[..., object]) -> View[[int]]:
    @member_act
    def act(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
        item = item_row(item_id, reader)
        do(user=reader, item=item)
        return _show_acts(request, item, reader)

    return act


def _undo_view(undo: Callable[..., bool]) -> View[[int]]:
    @member_act
    def take_back(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
        item = actions.undo_act(user=reader, item_id=item_id, undo=lambda item: undo(user=reader, item=item))
        return _show_acts(request, item, reader)

    return take_back


like, unlike = _act_view(actions.like), _undo_view(actions.unlike)
bookmark, remove_bookmark = _act_view(actions.bookmark), _undo_view(actions.remove_bookmark)


@member_act
@limited("publish")
def repost(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Repost an item to one's own followers."""
    item = item_row(item_id, reader)
    actions.repost(sender=reader, item=item)
    return _show_acts(request, item, reader)


@member_act
def undo_repost(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Delete one's own repost."""
    item = actions.undo_act(
        user=reader, item_id=item_id, undo=lambda item: actions.undo_repost(sender=reader, item=item)
    )
    return _show_acts(request, item, reader)


@member_act
def mute(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Mute the thread of an item."""
    item = item_row(item_id, reader)
    mute_thread(user=reader, item=item)
    undo = reverse("unmute-thread", args=[item.pk])
    messages.success(request, with_undo(_("Thread muted. You won't get notifications from it."), undo))
    return redirect_next(request, "item", item.repost_of_id or item.pk)


@member_act
def unmute(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Unmute the thread of an item."""
    actions.undo_act(user=reader, item_id=item_id, undo=lambda item: unmute_thread(user=reader, item=item))
    messages.success(request, with_undo(_("Thread unmuted."), reverse("mute-thread", args=[item_id])))
    return redirect_next(request, "home")


@member_page
def saved_items(request: PageRequest, reader: User, kept: SavedKind) -> HttpResponse:
    """What the reader bookmarked or likes, newest first."""
    last_id = position(request)
    page = saved_page(reader, kept, last_id=last_id)
    shown = Cards(request.user).of(page.items, answered=answered_senders(page.items, reader))
    context = {"page": page, "cards": shown, "is_first": last_id is None, "kept": kept}
    return show(request, "items/kept.html", context, part="items/_more.html")


def _show_acts(request: PageRequest, item: Item, reader: User) -> HttpResponse:
    shown = find_item(item.repost_of_id or item.pk, reader)
    if not wants_part(request):
        return _back_to(request, shown) if shown else redirect_next(request, "home")
    if shown is None:
        return HttpResponse()
    return show(request, "items/_acts.html", {"card": Cards(request.user).one(shown)})


def _back_to(request: PageRequest, item: ItemBody) -> HttpResponse:
    response = redirect_next(request, "item", item.id)
    if next_page(request) and "#" not in response["Location"]:
        response["Location"] += f"#item-{parse_id(request.POST.get('entry', '')) or item.id}"
    return response


# --- Quotes ----------------------------------------------------------------------------------------------
@require_safe
def quotes(request: PageRequest, item_id: int) -> HttpResponse:
    """The quotes of an item, newest first."""
    item = visible_item(item_id, request.user).shown
    last_id = position(request)
    page = quotes_page(item, request.user, last_id=last_id)
    shown = Cards(request.user).of(page.items, answered=answered_senders(page.items, request.user))
    context = {"item": item, "page": page, "cards": shown, "is_first": last_id is None}
    return show(request, "items/quotes.html", context, part="items/_more.html")


@member_act
def revoke_quote(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Stop a quote from showing one's own item."""
    quote = quote_of_own(item_id, reader)
    actions.revoke_quote(quote=quote)
    messages.success(request, _("Removed. That quote no longer shows your post."))
    return redirect_next(request, "item", quote.quote_of_id)


# --- Hidden replies --------------------------------------------------------------------------------------
@require_safe
def hidden_replies(request: PageRequest, item_id: int) -> HttpResponse:
    """The replies that a post's sender has hidden, newest first."""
    item = visible_item(item_id, request.user).shown
    last_id = position(request)
    page = hidden_page(item, request.user, last_id=last_id)
    shown = Cards(request.user).of(page.items, answered=answered_senders(page.items, request.user))
    context = {"item": item, "page": page, "cards": shown, "is_first": last_id is None}
    return show(request, "items/hidden_replies.html", context, part="items/_more.html")


@member_act
def hide(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Hide a reply in one's own thread."""
    reply = item_row(item_id, reader)
    root_id = reply.root_id or reply.pk
    hide_reply(user=reader, root_id=root_id, reply_id=reply.pk)
    undo = reverse("unhide-reply", args=[reply.pk])
    messages.success(request, with_undo(_("Reply hidden. It's under “Hidden replies” now."), undo))
    return redirect_to(request, reverse("item", args=[root_id]))


@member_act
def unhide(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Show a hidden reply again."""
    reply = item_row(item_id, reader)
    show_reply(user=reader, root_id=reply.root_id or reply.pk, reply_id=reply.pk)
    messages.success(request, _("The reply is back in the thread."))
    return redirect_to(request, reverse("item", args=[reply.pk]))


# --- Editing and deleting --------------------------------------------------------------------------------
@transaction.atomic
def _edit(own: Item, form: EditForm) -> Item:
    """Save an edit of an item, all or nothing. Raises ContentError and MediaError."""
    attachments.describe(own, form.media_said)
    visibility = form.cleaned_data["visibility"]
    own = actions.revise(
        item=own,
        visibility=visibility if visibility != own.visibility else None,
        quotable_by=form.cleaned_data["quotable_by"],
        repliable_by=form.cleaned_data.get("repliable_by"),
        title=form.cleaned_data.get("title"),
        content=form.content,
    )
    own.refresh_from_db(fields=["status"])
    return own


@member_form
def edit(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Edit one's own item."""
    own = own_item(item_id, reader)
    if own.repost_of_id:  # reposts have no content
        raise PermissionDenied
    form = EditForm(own, request.POST or None)
    spot = "slot" if wants_part(request) and request.htmx.target != "editor" else "page"
    if form.is_valid():
        try:
            own = _edit(own, form)
        except ContentError as error:
            form.add_error("text", str(error))
        except (MediaError, actions.AudienceError) as error:
            form.add_error(None, str(error))
    if form.is_valid():
        is_held = own.status == Status.IN_REVIEW
        if spot == "slot":
            shown = hydrate([own.pk], reader)[0]
            part = reswap(show(request, "items/_item.html", {"card": Cards(reader).one(shown)}), "none")
            said = {"words": _held_words(shown)} if is_held else {}
            return trigger_client_event(part, "saved", said)
        if is_held:
            _explain_held(request, own, reader)
        else:
            messages.success(request, _("Saved."))
        return redirect_to(request, reverse("item", args=[own.pk]))
    if request.method != "POST":
        form.fields["text"].widget.attrs["autofocus"] = True
    context = {"item": hydrate([own.pk], reader)[0], "form": form, "spot": spot}
    status = INVALID if form.errors else 200
    return show(request, "items/edit.html", context, part="items/_edit.html", status=status)


@member_form
def delete(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Delete one's own item. Without JavaScript this page asks first."""
    if request.method != "POST":
        item = hydrate([own_item(item_id, reader).pk], reader)[0]
        return show(request, "items/delete.html", {"item": item, "content": Cards(request.user).content(item)})
    actions.delete_own(user=reader, item_id=item_id)
    if wants_part(request):
        return trigger_client_event(HttpResponse(), "deleted")
    messages.success(request, _("Deleted."))
    return redirect_next(request, "home")
