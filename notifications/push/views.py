from collections.abc import Sequence
from typing import Any, NamedTuple

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from oauth2_provider.models import AccessToken

from accounts.access import member_act, member_form
from accounts.models import User
from accounts.signing_in.places import device_name
from accounts.signing_in_models import OWN_APP
from notifications.models import PushSubscription, QuietHours
from notifications.push import actions, waiting
from notifications.push.encryption import public_key
from notifications.push.forms import DeviceForm, QuietForm
from web.pages import INVALID, PageRequest, limited, show


class PushDevice(NamedTuple):
    """A browser or app that takes the reader's push messages."""

    id: int
    name: str
    is_here: bool
    is_failing: bool
    is_tested: bool
    form: DeviceForm


@member_form
def push(request: PageRequest, reader: User) -> HttpResponse:
    """The devices and quiet hours."""
    row = QuietHours.objects.filter(user=reader).first()
    initial = {"begins": str(row.begins), "ends": str(row.ends)} if row else {}
    form = QuietForm(request.POST if request.method == "POST" else None, initial=initial)
    if form.is_valid():
        actions.set_quiet_hours(user=reader, hours=form.hours())
        return _redirect_saved(request)
    devices = _devices(reader, request.session.session_key)
    context = {
        "devices": devices,
        "is_on_here": any(device.is_here for device in devices),
        "key": public_key(),
        "form": form,
        "time_zone": row.time_zone if row else "",
    }
    return show(request, "notifications/push.html", context, status=INVALID if form.errors else 200)


def _devices(reader: User, session_key: str | None) -> Sequence[PushDevice]:
    rows = PushSubscription.objects.filter(user=reader).order_by("-pk")[: actions.MOST]
    held = AccessToken.objects.filter(pk__in=[row.token_id for row in rows if row.token_id]).exclude(
        application=OWN_APP
    )
    apps: dict[Any, str] = dict(held.values_list("pk", "application__name"))
    found = [
        PushDevice(
            row.pk,
            apps.get(row.token_id) or device_name(row.user_agent),
            row.session_key is not None and row.session_key == session_key,
            row.is_failing,
            row.trial_at is not None,
            DeviceForm.of(row),
        )
        for row in rows
    ]
    return sorted(found, key=lambda device: not device.is_here)


@member_act
def change_device(request: PageRequest, reader: User, subscription_id: int) -> HttpResponse:
    """Save what is pushed to a device."""
    form = DeviceForm(request.POST)
    if not form.is_valid():
        return redirect("settings-push")
    if not actions.change(user=reader, subscription_id=subscription_id, choice=form.choice()):
        raise Http404
    return _redirect_saved(request)


@member_act
def remove(request: PageRequest, reader: User, subscription_id: int) -> HttpResponse:
    """Push nothing to a device any more."""
    actions.unsubscribe(user=reader, subscription_id=subscription_id)
    return _redirect_saved(request)


@member_act
@limited("push_test")
def send_trial(request: PageRequest, reader: User, subscription_id: int) -> HttpResponse:
    """Send a test to a device. The page says why not."""
    if not PushSubscription.objects.filter(user=reader, pk=subscription_id).exists():
        raise Http404
    if waiting.add_trial(user=reader, subscription_id=subscription_id):
        messages.success(request, _("Test sent. It should arrive in a moment."))
    return redirect("settings-push")


def _redirect_saved(request: PageRequest) -> HttpResponse:
    messages.success(request, _("Saved."))
    return redirect("settings-push")
