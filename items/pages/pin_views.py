from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.access import member_act
from accounts.models import User
from items.finding import own_item
from items.profiles import pins
from web.pages import PageRequest, redirect_next, with_undo


@member_act
def pin(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Pin one's own public post."""
    item = own_item(item_id, reader)
    try:
        pins.pin(item=item)
    except pins.NotPinnableError:
        messages.error(request, _("You can only pin public posts."))
    except pins.PinCapError:
        words = ngettext(
            "You can pin up to %(count)d post. Unpin one first.",
            "You can pin up to %(count)d posts. Unpin one first.",
            pins.PINS,
        )
        messages.error(request, words % {"count": pins.PINS})
    else:
        messages.success(request, with_undo(_("Pinned to your profile."), reverse("unpin", args=[item_id])))
    return redirect_next(request, "profile", reader.username)


@member_act
def unpin(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Unpin a post."""
    pins.unpin(item_id=own_item(item_id, reader).pk)
    messages.success(request, with_undo(_("Unpinned."), reverse("pin", args=[item_id])))
    return redirect_next(request, "profile", reader.username)
