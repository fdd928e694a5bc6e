"""The verbs that change accounts. Each is one transaction."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy
from knox.models import AuthToken

from accounts.locale import zone_names
from accounts.models import Level, User

PASSWORD_LENGTH = 256
"""Characters; a password is hashed as a whole, so that its length must have an end."""
# What Django's validator says, which Django's own Chinese catalogue lacks: here it gets into ours.
TOO_SHORT = ngettext_lazy(
    "This password is too short. It must contain at least %d character.",
    "This password is too short. It must contain at least %d characters.",
    8,
)


def _name_taken() -> ValidationError:
    return ValidationError({"username": ValidationError(_("A user with that name exists."), code="unique")})


def sign_up(*, username: str, password: str) -> User:
    """Create an account that reads and is pushed to at once. Raises ValidationError, a dict by field.

    Names are unique without regard to case; of two who take one at the same time, the database refuses the second.
    """
    user = User(username=username, level=Level.DAILY, last_seen_at=timezone.now())
    user.clean_fields(exclude=["password"])
    if User.objects.named(username).exists():
        raise _name_taken()
    try:
        if len(password) > PASSWORD_LENGTH:
            raise ValidationError(_("At most %(count)d characters.") % {"count": PASSWORD_LENGTH}, code="max_length")
        validate_password(password, user)
    except ValidationError as error:
        raise ValidationError({"password": error.error_list}) from error
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as error:
        if not User.objects.named(username).exists():
            raise
        raise _name_taken() from error
    return user


def edit_profile(*, user: User, display_name: str | None = None, bio: str | None = None) -> User:
    """Change how a user presents themself; what is None stays. Raises ValidationError, a dict by field."""
    fields = {"display_name": display_name, "bio": bio}
    changed = [field for field, value in fields.items() if value is not None]
    for field in changed:
        setattr(user, field, fields[field])
    user.clean_fields(exclude={field.name for field in User._meta.fields} - set(changed))
    if changed:
        user.save(update_fields=changed)
    return user


def edit_preferences(*, user: User, language: str | None = None, time_zone: str | None = None) -> User:
    """Choose language and time zone: "" leaves it to the browser, None stays.

    Raises ValidationError, a dict by field.
    """
    if language and language not in dict(settings.LANGUAGES):
        raise ValidationError({"language": ValidationError(_("There is no such language here."), code="invalid")})
    if time_zone and time_zone not in zone_names():
        raise ValidationError({"time_zone": ValidationError(_("There is no such time zone."), code="invalid")})
    fields = {"language": language, "time_zone": time_zone}
    changed = [field for field, value in fields.items() if value is not None]
    for field in changed:
        setattr(user, field, fields[field])
    if changed:
        user.save(update_fields=changed)
    return user


@transaction.atomic
def issue_token(*, user: User) -> str:
    """A new API token; only its hash is kept. Expired tokens go, and so does the oldest beyond `TOKEN_CAP`."""
    tokens = AuthToken.objects.filter(user=user)
    tokens.filter(expiry__lt=timezone.now()).delete()
    kept = tokens.order_by("-created", "-pk").values_list("pk", flat=True)
    tokens.filter(pk__in=list(kept[settings.TOKEN_CAP - 1 :])).delete()
    _row, token = AuthToken.objects.create(user=user, expiry=timedelta(days=settings.TOKEN_DAYS))
    return str(token)


def revoke_token(*, digest: str) -> bool:
    """Make a token worthless; True if it was not already."""
    gone, _ = AuthToken.objects.filter(pk=digest).delete()
    return bool(gone)
