"""Sign-up: decides whether an account is created, waits for an admin, or is refused.

A valid invitation works in every mode but `closed`.
"""

from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import addresses, passwords
from accounts.about.models import SignUp
from accounts.about.site import current
from accounts.actions import check_password_shape, moderation_error
from accounts.imitation import check_imitation
from accounts.joining import first_admin, invitations
from accounts.joining_models import REASON_LENGTH, Application, Invited
from accounts.lookalikes import skeleton
from accounts.mail import actions as mail
from accounts.models import HeldName, Level, User
from storage.connections import fetch
from web import rates
from web.refusals import RefusalError

UNAVAILABLE = """
    SELECT 'name', lower(username) FROM accounts_user WHERE lower(username) = ANY(%(lower)s)
    UNION ALL SELECT 'name', lower(username) FROM accounts_application WHERE lower(username) = ANY(%(lower)s)
    UNION ALL SELECT 'looks', feedsite_skeleton(username) FROM accounts_user
        WHERE feedsite_skeleton(username) = ANY(%(looks)s)
    UNION ALL SELECT 'held', digest FROM accounts_heldname WHERE digest = ANY(%(digests)s)
"""


class AdminExistsError(Exception):
    """There is a superuser already."""


class ClosedError(RefusalError):
    """The site takes no new accounts."""

    status = HTTPStatus.FORBIDDEN
    code = "sign_up_closed"
    sentence = "This site takes no new accounts."


class SignUpInput(NamedTuple):
    """Input of a sign-up form."""

    username: str
    password: str
    display_name: str = ""
    email: str = ""
    reason: str = ""
    language: str = ""


def join(candidate: SignUpInput, *, invite: str = "") -> User | None:
    """Create an account as the mode says, or None if it waits for an admin. Raises ValidationError by field, and
    ClosedError.
    """
    if _may_join_now(invite):
        return _create_account(candidate, invite, must=current().sign_up != SignUp.OPEN)
    apply(candidate)
    return None


def check_sign_up(candidate: SignUpInput, *, invite: str = "") -> None:
    """Raise what `join` would, but create nothing."""
    _validated_user(candidate, asks_reason=not _may_join_now(invite))


def _may_join_now(invite: str) -> bool:
    mode = current().sign_up
    if mode == SignUp.CLOSED:
        raise ClosedError
    if mode == SignUp.INVITE and not invite:
        raise _invite_error(_("You need an invitation to sign up. Ask a member for one."))
    if mode == SignUp.OPEN or (invite and invitations.is_valid(invite)):
        return True
    if mode == SignUp.INVITE:
        raise _invite_error(_("This invitation is used up, expired or revoked. Ask for a new one."))
    return False


def _create_account(candidate: SignUpInput, code: str, *, must: bool) -> User:
    """Create an account and record the invitation that it used. `must`: raise ValidationError without a valid one."""
    user = _build_user(candidate)
    with transaction.atomic():
        invitation = invitations.use(code) if code else None
        if must and invitation is None:  # another used it up since `is_good`
            raise _invite_error(_("This invitation is used up, expired or revoked. Ask for a new one."))
        _insert(user, candidate.email)
        if invitation is not None:
            Invited.objects.create(user=user, invitation=invitation)
    return user


def sign_up(*, username: str, password: str, display_name: str = "") -> User:
    """Create an account in any mode, for an admin: its name may speak for the site. Raises ValidationError."""
    return _insert(_build_user(SignUpInput(username, password, display_name), is_by_admin=True))


@transaction.atomic
def make_first_admin(*, username: str, password: str, display_name: str = "") -> User:
    """Create the first superuser. Raises AdminExistsError."""
    with connection.cursor() as cursor:  # a second call at once finds the first one's superuser
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('accounts.joining.first_admin'))")
    if not first_admin.is_missing():
        raise AdminExistsError
    user = sign_up(username=username, password=password, display_name=display_name)
    user.is_staff = user.is_superuser = True
    user.save(update_fields=["is_staff", "is_superuser"])
    return user


def apply(candidate: SignUpInput) -> Application:
    """Ask an admin for an account. Raises ValidationError by field."""
    user = _build_user(candidate, asks_reason=True)
    with transaction.atomic():
        _lock_name(user.username)
        return Application.objects.create(
            username=user.username,
            display_name=user.display_name,
            password=user.password,
            email=candidate.email,
            language=candidate.language,
            reason=candidate.reason.strip(),
        )


def admit(application: Application) -> User:
    """Create an application's account. Raises ValidationError if the name is taken."""
    user = User(
        username=application.username,
        display_name=application.display_name,
        password=application.password,
        language=application.language,
        level=Level.DAILY,
        last_seen_at=timezone.now(),
    )
    return _insert(user, application.email)


def _build_user(candidate: SignUpInput, *, is_by_admin: bool = False, asks_reason: bool = False) -> User:
    user = _validated_user(candidate, is_by_admin=is_by_admin, asks_reason=asks_reason)
    user.password = passwords.hashed(candidate.password)  # last, because it costs most
    return user


def _validated_user(candidate: SignUpInput, *, is_by_admin: bool = False, asks_reason: bool = False) -> User:
    user = User(
        username=candidate.username,
        display_name=candidate.display_name,
        email="",  # confirmed by a letter first (accounts.addresses)
        level=Level.DAILY,
        last_seen_at=timezone.now(),
    )
    errors: dict[str, list[ValidationError]] = {}
    _collect_errors(errors, "", user.clean_fields, ["password"])
    _collect_errors(errors, "password", check_password_shape, candidate.password, user)
    if not is_by_admin:
        _collect_errors(errors, "email", _check_email, candidate.email)
    if asks_reason:
        _collect_errors(errors, "reason", _check_reason, candidate.reason)
    for field, text in (("username", user.username), ("display_name", user.display_name)):
        if field not in errors and (error := moderation_error(user, text)):
            errors[field] = [error]
        if field not in errors and not is_by_admin:
            _collect_errors(errors, field, check_imitation, text)
    if "username" not in errors:
        _collect_errors(errors, "username", _check_name, user.username)
    if errors:
        raise ValidationError(errors)
    return user


def _collect_errors(
    errors: dict[str, list[ValidationError]], field: str, check: Callable[..., None], *args: Any
) -> None:
    try:
        check(*args)
    except ValidationError as error:
        errors |= error.error_dict if hasattr(error, "error_dict") else {field: error.error_list}


def _check_email(email: str) -> None:
    if email and not mail.is_address(email.strip().lower()):
        raise ValidationError(
            {"email": ValidationError(_("This isn't an email address. Check it for typos."), code="invalid")}
        )
    if settings.EMAIL_REQUIRED and not email:
        raise ValidationError(
            {"email": ValidationError(_("Enter your email address. This site requires one."), code="required")}
        )


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise ValidationError(_("Tell us why you want to join."), code="required")
    if len(reason) > REASON_LENGTH:
        raise ValidationError(
            ngettext("At most %(count)d character.", "At most %(count)d characters.", REASON_LENGTH)
            % {"count": REASON_LENGTH},
            code="max_length",
        )


def _insert(user: User, email: str = "") -> User:
    try:
        with transaction.atomic():
            _lock_name(user.username)
            user.save(force_insert=True)
            if email:
                addresses.add(user=user, address=email)
    except IntegrityError as error:  # an older version's process, which claims nothing
        if not User.objects.named(user.username).exists():
            raise
        raise _name_taken() from error
    return user


def _lock_name(username: str) -> None:
    """Lock the name and its look-alikes. Raises ValidationError if taken."""
    with connection.cursor() as cursor:  # one lock for all look-alikes
        key = skeleton(username.lower().replace("i", "I"))
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('accounts.name'), hashtext(%s))", [key])
    _check_name(username)


def _check_name(username: str) -> None:
    if User.objects.named(username).exists() or Application.objects.named(username).exists():
        raise _name_taken()
    if HeldName.objects.filter(digest__in=HeldName.digests_of(username)).exists():
        raise _name_taken()
    if User.objects.similar_to(username).exists():
        words = _("This username looks too much like an existing one. Choose another.")
        raise ValidationError({"username": ValidationError(words, code="confusable")})


def _name_taken() -> ValidationError:
    return ValidationError({"username": ValidationError(_("This username is taken."), code="unique")})


def _invite_error(words: str) -> ValidationError:
    return ValidationError({"invite": ValidationError(words, code="invite")})


def count_attempt(address: str, *, code: str = "") -> float | None:
    """Count a sign-up attempt. Returns None, or seconds to wait."""
    callers = [("signup", address), ("signup_day", address), ("signup_network", rates.network(address))]
    wait = rates.hit_in_turn(callers)
    return count_code_attempt(address, code) if wait is None else wait


def count_code_attempt(address: str, code: str) -> float | None:
    """Count an attempt with an invitation code, unless the code is empty or valid. Returns None, or seconds to wait."""
    if not code:
        return None
    wait = rates.hit("invite", address)
    if wait is None and invitations.is_valid(code):
        rates.refund_each("invite", {address: 1})
    return wait


def unavailable_names(usernames: Collection[str]) -> dict[str, str]:
    """Names that no new user can take, with the error code."""
    lower = {name: name.lower() for name in usernames}
    looks = {name: skeleton(name) for name in usernames}
    params: dict[str, Any] = {
        "lower": list(set(lower.values())),
        "looks": list(set(looks.values())),
        "digests": [],
    }
    digests: dict[str, set[str]] = {}
    if HeldName.objects.exists():
        digests = {name: HeldName.digests_of(name) for name in usernames}
        params["digests"] = [digest for several in digests.values() for digest in several]
    found = {(kind, value) for kind, value in fetch(UNAVAILABLE, params)}
    reasons = {}
    for name in usernames:
        if ("name", lower[name]) in found or any(("held", digest) in found for digest in digests.get(name, ())):
            reasons[name] = "unique"
        elif ("looks", looks[name]) in found:
            reasons[name] = "confusable"
    return reasons
