import uuid
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django_htmx.http import trigger_client_event

from accounts.access import member_act, member_page
from accounts.locale import LOCAL
from accounts.models import User
from items import scheduling
from items.finding import item_row
from items.idempotency import IdempotencyConflictError
from items.models import ItemType, ScheduledPost
from items.pages.forms import AUDIENCES, POLL_LASTS, ItemForm
from items.pages.reading import full_time
from items.profiles.profile import find_item
from items.quotes import NotQuotableError
from items.text import ContentError, poll_end
from items.threads.replying import NotRepliableError
from web.pages import PageRequest, next_page, redirect_to, show

OF_COMPOSER = frozenset({"text", "media", "warning", "sensitive", "poll"})
"""The parts of the content that the composer shows. Apps may send others, which stay."""


@member_page
def scheduled(request: PageRequest, reader: User) -> HttpResponse:
    """The reader's scheduled posts, the next first."""
    posts = scheduling.scheduled_of(reader)
    media, audiences = scheduling.media_of(reader, posts), dict(AUDIENCES)
    context = {
        "posts": [
            {
                "id": post.pk,
                "at": post.publish_at,
                "text": post.post["title"] or str(post.post["content"].get("text", "")),
                "audience": audiences[post.post["visibility"]],
                "is_reply": post.post["reply_to"] is not None,
                "media": media[post.pk],
                "failure": post.get_failure_display() if post.failure else "",
                "reasons": [one.failure for one in media[post.pk] if one.failure],
                "progress": next((one.progress for one in media[post.pk] if str(post.awaits) == one.id), None),
            }
            for post in posts
        ]
    }
    return show(request, "items/scheduled.html", context)


@member_page
def edit(request: PageRequest, reader: User, post_id: int) -> HttpResponse:
    """The composer with a scheduled post."""
    post = scheduling.own_post(reader, post_id)
    written, content = post.post, post.post["content"]
    initial: dict[str, Any] = {"key": uuid.uuid4().hex, "scheduled": post.pk}
    initial |= {name: written[name] or "" for name in ("title", "visibility", "quotable_by")}
    initial["repliable_by"] = written.get("repliable_by") or ""
    initial |= {name: content.get(name, "") for name in ("text", "warning", "sensitive", "language")}
    if poll := content.get("poll"):
        lasts = poll.get("closes_in") or (poll_end(poll) - (post.publish_at or post.created_at)).total_seconds()
        initial |= {f"option_{place}": option for place, option in enumerate(poll["options"], 1)}
        initial["poll_lasts"] = min((seconds for seconds, _words in POLL_LASTS), key=lambda one: abs(one - lasts))
        initial["poll_multiple"] = poll.get("multiple", False)
    form = ItemForm(initial=initial)
    if written["reply_to"]:
        del form.fields["repliable_by"]
    if post.publish_at:
        form.initial["publish_at"] = post.publish_at.astimezone(form.clock).strftime(LOCAL)
    form.fields["text"].widget.attrs["autofocus"] = True
    form.author, form.taken = reader, scheduling.files_of(reader, [post])[post.pk]
    context = {"form": form, "next": reverse("scheduled"), "spot": "write"}
    return show(request, "items/publish.html", context)


@member_act
def delete(request: PageRequest, reader: User, post_id: int) -> HttpResponse:
    """Delete a scheduled post."""
    scheduling.cancel(sender=reader, post_id=post_id)
    messages.success(request, _("Deleted."))
    return redirect_to(request, reverse("scheduled"))


# --- The composer ----------------------------------------------------------------------------------------
def scheduled_post(reader: User, form: ItemForm) -> ScheduledPost | None:
    """Schedule or change a valid form's post. None if the form now has an error. Raises Item.DoesNotExist."""
    try:
        return _change(reader, form) if form.cleaned_data["scheduled"] else _schedule(reader, form)
    except scheduling.PublishTimeError as error:
        form.add_error("publish_at", str(error))
    except scheduling.ScheduledCapError:
        words = ngettext(
            "You can schedule up to %(count)d post. Delete one first.",
            "You can schedule up to %(count)d posts. Delete one first.",
            scheduling.MOST,
        )
        form.add_error("publish_at", words % {"count": scheduling.MOST})
    except (NotQuotableError, NotRepliableError) as error:
        form.add_error("text", str(error))
    except ScheduledPost.DoesNotExist:
        form.add_error("text", _("This post is already published or deleted."))
    except ContentError as error:
        if error.field == "content.media":
            form.refuse_media(str(error))
        else:
            form.add_error("text", str(error))
    return None


def _schedule(reader: User, form: ItemForm) -> ScheduledPost:
    items = {
        name: item_row(form.cleaned_data[name], reader) if form.cleaned_data[name] is not None else None
        for name in ("reply_to", "quote_of")
    }
    post: dict[str, Any] = form.post | items | {"sender": reader, "publish_at": form.cleaned_data["publish_at"]}
    try:
        return scheduling.schedule(**post, idempotency_key=form.cleaned_data["key"])
    except IdempotencyConflictError:  # the sender went back to a sent form and changed it
        return scheduling.schedule(**post)


def _change(reader: User, form: ItemForm) -> ScheduledPost:
    post_id, publish_at = form.cleaned_data["scheduled"], form.cleaned_data["publish_at"]
    known = scheduling.own_post(reader, post_id)
    if known.publish_at and not publish_at:
        raise scheduling.PublishTimeError(_("Choose a day and a time."))
    if known.publish_at and known.publish_at.replace(second=0, microsecond=0) == publish_at:
        publish_at = None  # fields have no seconds
    post = form.post
    others = {name: part for name, part in known.post["content"].items() if name not in OF_COMPOSER}
    post["content"] = others | post["content"]
    if known.post["type"] == ItemType.LINK and post["type"] == ItemType.TEXT:
        post["type"] = ItemType.LINK
    return scheduling.change(sender=reader, post_id=post_id, publish_at=publish_at, **post)


def answer(request: PageRequest, post: ScheduledPost, reader: User, spot: str) -> HttpResponse:
    """Go to the scheduled posts. An open page stays."""
    if post.publish_at and not post.awaits:
        words = _("Scheduled for %(time)s.") % {"time": full_time(post.publish_at)}
    else:
        words = _("Your post comes out when its video is ready. Until then it's under Scheduled posts.")
    if spot == "write":
        messages.success(request, words)
        return redirect_to(request, next_page(request) or reverse("scheduled"))
    response = HttpResponse()
    if spot not in ("slot", "over"):
        answered = find_item(post.post["reply_to"], reader) if post.post["reply_to"] else None
        if spot == "thread" and answered is None:
            raise Http404
        form = ItemForm.fresh(answered, reader)
        context = {"form": form, "spot": spot, "next": reverse("home") if spot == "home" else ""}
        response = show(request, "items/_composer.html", context)
    return trigger_client_event(response, "held", {"words": words}, after="settle")
