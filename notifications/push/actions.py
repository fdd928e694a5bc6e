"""The verbs that change who takes push messages."""

from collections.abc import Collection
from ipaddress import ip_address
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from accounts import proofs
from accounts.models import User
from accounts.signing_in.sealing import seal
from notifications.models import PUSHED, PushPolicy, PushSubscription, PushWords, QuietHours
from notifications.push.encryption import CURVE, from_base64, public_key, to_base64url
from web import outbound
from web.refusals import ConflictError, RefusalError

MOST = 10
"""Most subscriptions of a user. A further one replaces the oldest."""
ENDPOINT_LENGTH = 2000
KEY_BYTES, SECRET_BYTES = 65, 16
"""The length of a browser's public key and of its secret."""
INNER = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".onion")
"""Endings of host names that are not on the public internet."""


class BadSubscriptionError(RefusalError, ValueError):
    """Nothing can be sent to this subscription, because of `field`."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


class EndpointTakenError(ConflictError):
    """The credentials have ended, or another user has the endpoint."""

    sentence = "This device belongs to another account, or you are logged out."


class DeviceHolder(NamedTuple):
    """The session or token of a subscription."""

    session_key: str | None = None
    token_id: int | None = None
    app_token: str = ""
    """The text of an app's token."""

    def subscription(self, user: User) -> PushSubscription | None:
        """The subscription of this session or token, or None."""
        return PushSubscription.objects.filter(user=user, session_key=self.session_key, token_id=self.token_id).first()


class PushChoice(NamedTuple):
    """What is pushed, and in whose words. None: as it is."""

    kinds: Collection[str] | None = None
    policy: str | None = None
    words: str | None = None

    def merged_columns(self, row: PushSubscription | None) -> dict[str, Any]:
        """The columns of this choice. What it leaves open stays as in `row`, or gets the default."""
        kinds = self.kinds if self.kinds is not None else row.kinds if row else PUSHED
        return {
            "kinds": [kind.value for kind in PUSHED if kind in kinds],
            "policy": self.policy or (row.policy if row else PushPolicy.ALL),
            "words": self.words or (row.words if row else PushWords.OPEN),
        }


class Device(NamedTuple):
    """Where messages go, and how they are encrypted for it."""

    endpoint: str
    p256dh: str
    auth: str
    is_standard: bool = True
    user_agent: str = ""
    language: str = ""


@transaction.atomic
def subscribe(*, user: User, holder: DeviceHolder, device: Device, choice: PushChoice) -> PushSubscription:
    """Push to a device instead of what the session or token had.

    A browser in which another user logs in brings the same endpoint and secret: it becomes that user's. Raises
    BadSubscriptionError, EndpointTakenError and EndedError.
    """
    check_endpoint(device.endpoint)
    p256dh, auth = _checked_key(device.p256dh), _checked_secret(device.auth)
    proofs.lock_if_valid(user)
    own = holder.subscription(user)
    chosen = choice.merged_columns(own)
    if own is not None:
        PushSubscription.objects.filter(pk=own.pk).delete()
    before = PushSubscription.objects.select_for_update().filter(endpoint=device.endpoint).first()
    if before is not None:
        if before.auth != auth:
            raise EndpointTakenError
        before.delete()
    kept = PushSubscription.objects.filter(user=user).order_by("-pk").values_list("pk", flat=True)
    PushSubscription.objects.filter(pk__in=list(kept[MOST - 1 :])).delete()
    try:
        return PushSubscription.objects.create(
            user=user,
            session_key=holder.session_key,
            token_id=holder.token_id,
            app_token=seal(holder.app_token) if holder.app_token else "",
            endpoint=device.endpoint,
            p256dh=p256dh,
            auth=auth,
            server_key=public_key(),
            is_standard=device.is_standard,
            **chosen,
            language=device.language,
            user_agent=device.user_agent,
        )
    except IntegrityError as error:
        raise EndpointTakenError from error


def change(*, user: User, subscription_id: int, choice: PushChoice) -> bool:
    """Change a subscription. False if there is none."""
    rows = PushSubscription.objects.filter(user=user, pk=subscription_id)
    row = rows.first()
    return row is not None and bool(rows.update(**choice.merged_columns(row)))


def unsubscribe(*, user: User, subscription_id: int) -> bool:
    """Delete a subscription. False if there is none."""
    return bool(PushSubscription.objects.filter(user=user, pk=subscription_id).delete()[0])


def end_sessions(*, user: User) -> None:
    """Forget the subscriptions of all the user's sessions."""
    PushSubscription.objects.filter(user=user, token_id=None).delete()


def set_quiet_hours(*, user: User, hours: tuple[int, int] | None) -> None:
    """Push nothing between these hours."""
    if hours is None or hours[0] == hours[1]:
        QuietHours.objects.filter(user=user).delete()
        return
    zone = timezone.get_current_timezone_name()
    fields = {"begins": hours[0], "ends": hours[1], "time_zone": zone}
    QuietHours.objects.update_or_create(user=user, defaults=fields)


# --- What a device says ----------------------------------------------------------------------------------
def check_endpoint(url: str) -> None:
    """Raise BadSubscriptionError unless it is https on a public address. Names are looked up when sending."""
    refused = BadSubscriptionError("endpoint", "An https address on the public internet.")
    if len(url) > ENDPOINT_LENGTH or not (url.isascii() and url.isprintable()) or {" ", "\\"} & set(url):
        raise refused
    try:
        parsed = parse_url(url)
    except LocationParseError:
        raise refused from None
    is_odd = parsed.scheme != "https" or not parsed.host or parsed.auth is not None or parsed.fragment is not None
    if is_odd or not (settings.OUTBOUND_TO_LOOPBACK or _is_public(parsed.host or "", parsed.port)):
        raise refused


def _is_public(host: str, port: int | None) -> bool:
    if port not in (None, outbound.PORTS["https"]):
        return False
    name = host.strip("[]").rstrip(".").lower()
    try:
        return outbound.is_public(ip_address(name))
    except ValueError:
        # Resolvers read digits as a last label as an old IPv4 address.
        last = name.rpartition(".")[2]
        return "." in name and not last[:1].isdigit() and not name.endswith(INNER)


def _checked_key(text: str) -> str:
    """A device's public key in one spelling. Raises BadSubscriptionError."""
    key = _decode_bytes("p256dh", text, KEY_BYTES)
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(CURVE, key)
    except ValueError:
        raise BadSubscriptionError("p256dh", "No point of P-256.") from None
    return to_base64url(key)


def _checked_secret(text: str) -> str:
    return to_base64url(_decode_bytes("auth", text, SECRET_BYTES))


def _decode_bytes(field: str, text: str, length: int) -> bytes:
    try:
        found = from_base64(text)
    except ValueError:
        found = b""
    if len(found) != length:
        raise BadSubscriptionError(field, f"{length} bytes in base64url.")
    return found
