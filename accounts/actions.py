"""Changes accounts, each in one transaction. A bool result says whether anything changed."""

import secrets
from collections.abc import Iterable
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy
from oauth2_provider.models import AccessToken, Grant, set_token_value
from oauthlib.common import generate_token

from accounts import addresses, faces, passwords, profile_fields, proofs, review
from accounts.imitation import check_imitation
from accounts.models import (
    Authenticator,
    Deletion,
    EmailAddress,
    HeldName,
    Level,
    Session,
    SessionOrigin,
    TextSize,
    TokenOrigin,
    User,
)
from accounts.names import folded_name
from accounts.review import Submission
from accounts.signals import account_deleted, levels_lowered, sessions_ended
from accounts.signing_in_models import OWN_APP, ClientApp
from storage.draws import Draw
from storage.events import Revoked, announce
from web.languages import is_code
from web.refusals import ConflictError
from web.times import zone_names

# Missing from Django's Chinese catalogue.
TOO_SHORT = ngettext_lazy(
    "This password is too short. It must contain at least %d character.",
    "This password is too short. It must contain at least %d characters.",
    8,
)
MODERATORS = "Moderators"
"""The group that moderation's first migration creates."""
SCRUBBED = [
    "username",
    "display_name",
    "folded_name",
    "bio",
    "profile_fields",
    "email",
    "language",
    "time_zone",
    "avatar",
    "banner",
    "password",
    "is_active",
    "is_staff",
    "is_superuser",
    "level",
    "last_seen_at",
    "last_login",
    "deleted_at",
    "session_epoch",
]
"""Fields that deleting an account writes. `password` becomes unusable."""


class LastSuperuserError(ConflictError):
    """The last active superuser must stay."""

    sentence = "You're this site's last admin. Make another member an admin first."


def _wrong_password() -> ValidationError:
    return ValidationError(_("Wrong password. Try again."), code="invalid")


def moderation_error(author: User, text: str) -> ValidationError | None:
    """The error if moderation would hold the text."""
    if text and review.hold_reasons(Submission(author, text, is_new=False)):
        return ValidationError(_("This has words or links that this site doesn't allow."), code="not_allowed")
    return None


def edit_profile(
    *,
    user: User,
    display_name: str | None = None,
    bio: str | None = None,
    fields: Iterable[profile_fields.Pair] | None = None,
    is_locked: bool | None = None,
) -> User:
    """Change a profile. None: no change. Raises ValidationError by field, also if moderation would hold a text: a
    profile has no other to show.
    """
    texts = {"display_name": display_name, "bio": bio}
    changed = [field for field, value in texts.items() if value is not None]
    new = [field for field in changed if texts[field] != getattr(user, field)]
    for field in changed:
        setattr(user, field, texts[field])
    user.clean_fields(exclude={field.name for field in User._meta.fields} - set(changed))
    if errors := {field: error for field in new if (error := moderation_error(user, texts[field] or ""))}:
        raise ValidationError(errors)
    if fields is not None:
        _set_profile_fields(user, fields)
        changed.append("profile_fields")
    if "display_name" in new:
        try:
            check_imitation(user.display_name, user)
        except ValidationError as error:
            raise ValidationError({"display_name": error}) from error
    if is_locked is not None:
        user.is_locked = is_locked
        changed.append("is_locked")
    _save(user, changed)
    return user


def _set_profile_fields(user: User, pairs: Iterable[profile_fields.Pair]) -> None:
    try:
        taken = profile_fields.cleaned(pairs)
        words = "\n".join(f"{one['name']} {one['value']}" for one in taken if one not in user.profile_fields)
        if error := moderation_error(user, words):
            raise error
    except ValidationError as error:
        raise ValidationError({"fields": error}) from error
    user.profile_fields = taken


def _save(user: User, fields: list[str]) -> None:
    """Write these columns unless the account is deleted, so that no personal data returns."""
    if "display_name" in fields:
        user.folded_name = folded_name(user.username, user.display_name)
        fields = [*fields, "folded_name"]
    if fields:
        User.objects.filter(pk=user.pk, deleted_at=None).update(**{field: getattr(user, field) for field in fields})


def dismiss_announcement(*, user: User, mark: str) -> None:
    """Record that the user dismissed an announcement in an app."""
    User.objects.filter(pk=user.pk).update(dismissed_announcement=mark)


def edit_preferences(
    *,
    user: User,
    language: str | None = None,
    time_zone: str | None = None,
    keeps_history: bool | None = None,
    is_indexable: bool | None = None,
    quotable_by: str | None = None,
    takes_requests: bool | None = None,
    enter_sends: bool | None = None,
    post_visibility: str | None = None,
    post_repliable_by: str | None = None,
    post_sensitive: bool | None = None,
    post_language: str | None = None,
    plays_videos: bool | None = None,
    hides_suggestions: bool | None = None,
    text_size: str | None = None,
) -> User:
    """Change preferences. None: no change; "": as the browser says. Raises ValidationError by field."""
    if language and language not in dict(settings.LANGUAGES):
        raise ValidationError(
            {"language": ValidationError(_("This site doesn't offer this language."), code="invalid")}
        )
    if time_zone and time_zone not in zone_names():
        raise ValidationError(
            {
                "time_zone": ValidationError(
                    _("We don't know this time zone. Use a name like Asia/Shanghai."), code="invalid"
                )
            }
        )
    if post_language and not is_code(post_language):
        raise ValidationError({"post_language": ValidationError(_("We don't know this language."), code="invalid")})
    fields = {
        "language": language,
        "time_zone": time_zone,
        "keeps_history": keeps_history,
        "is_indexable": is_indexable,
        "quotable_by": quotable_by,
        "takes_requests": takes_requests,
        "enter_sends": enter_sends,
        "post_visibility": post_visibility,
        "post_repliable_by": post_repliable_by,
        "post_sensitive": post_sensitive,
        "post_language": post_language,
        "plays_videos": plays_videos,
        "hides_suggestions": hides_suggestions,
        "text_size": None if text_size is None else TextSize(text_size).value,
    }
    changed = [field for field, value in fields.items() if value is not None]
    for field in changed:
        setattr(user, field, fields[field])
    _save(user, changed)
    return user


@transaction.atomic
def change_password(*, user: User, current: str, new: str, keep_token: int = 0) -> User:
    """Set a password, and end sessions and tokens except `keep_token`. The caller renews its own session
    (`update_session_auth_hash`). Raises ValidationError by field, and EndedError.
    """
    check_own_password(user=user, password=current, field="current_password")
    try:
        check_password_shape(new, user)
    except ValidationError as error:
        raise ValidationError({"new_password": error.error_list}) from error
    hashed = passwords.hashed(new)  # takes long, so before the lock
    proofs.lock_if_valid(user)
    write_password(user=user, hashed=hashed, keep_token=keep_token)
    addresses.send_notice(user, "password_changed")
    return user


def write_password(*, user: User, hashed: str, keep_token: int = 0) -> None:
    """Set a password, and end sessions and tokens except `keep_token`, in the caller's transaction."""
    user.password = hashed
    User.objects.filter(pk=user.pk).update(password=hashed, session_generation=Draw())
    end_tokens(user=user, keep_token=keep_token)


def check_own_password(*, user: User, password: str, field: str) -> None:
    """Raise ValidationError for `field` unless this is the user's password."""
    if not user.check_password(password):
        raise ValidationError({field: _wrong_password()})


def check_password_shape(password: str, user: User) -> None:
    """Raise ValidationError for an unsafe or too long password."""
    if len(password) > passwords.LENGTH:
        raise ValidationError(
            ngettext("At most %(count)d character.", "At most %(count)d characters.", passwords.LENGTH)
            % {"count": passwords.LENGTH},
            code="max_length",
        )
    validate_password(passwords.normalized(password), user)


@transaction.atomic
def log_out_everywhere(*, user: User, keep_token: int = 0) -> User:
    """End sessions and tokens except `keep_token`, for their user, who renews the own session. Raises EndedError."""
    proofs.lock_if_valid(user)
    return end_sessions_and_tokens(user=user, keep_token=keep_token)


@transaction.atomic
def end_sessions_and_tokens(*, user: User, keep_token: int = 0) -> User:
    """End sessions and tokens except `keep_token`."""
    User.objects.filter(pk=user.pk).update(session_epoch=F("session_epoch") + 1, session_generation=Draw())
    user.refresh_from_db(fields=["session_epoch"])
    end_tokens(user=user, keep_token=keep_token)
    return user


@transaction.atomic
def delete_account(*, user: User, by_owner: bool = False) -> bool:
    """Delete an account. False if already deleted. Raises LastSuperuserError, and EndedError to its owner.

    Personal data vanishes at once; accounts.purge removes the rest. The row stays for threads.
    """
    _require_other_superuser(user)
    if by_owner:
        proofs.lock_if_valid(user)
    user = User.objects.select_for_update().get(pk=user.pk)
    if user.deleted_at is not None:
        return False
    now = timezone.now()
    names = [HeldName(digest=digest) for digest in HeldName.digests_of(user.username)]
    HeldName.objects.bulk_create(names, ignore_conflicts=True)
    user.username = f"deleted-{secrets.token_hex(10)}"
    user.display_name = user.bio = user.email = user.language = user.time_zone = ""
    user.profile_fields = []
    faces.forget_faces(user)
    user.is_active = user.is_staff = user.is_superuser = False
    user.level, user.last_seen_at, user.last_login = Level.DORMANT, None, None
    user.deleted_at = now
    user.set_unusable_password()
    user.session_epoch += 1
    user.save(update_fields=SCRUBBED)
    user.groups.clear()
    user.user_permissions.clear()
    end_tokens(user=user)
    delete_credentials(user)
    Deletion.objects.create(user=user)
    transaction.on_commit(partial(_announce_deletion, user.pk))
    return True


def _require_other_superuser(user: User) -> None:
    """Raise LastSuperuserError for the last active superuser. It locks all of them, so that two cannot both leave."""
    if user.is_superuser:
        superusers = User.objects.active().filter(is_superuser=True).order_by("pk").select_for_update()
        if not any(other.pk != user.pk for other in superusers):
            raise LastSuperuserError


@transaction.atomic
def promote(*, user: User, as_moderator: bool = False) -> bool:
    """Make a user administrator or moderator. False if already."""
    user = User.objects.active().select_for_update().get(pk=user.pk)
    group = Group.objects.get(name=MODERATORS)
    if user.is_staff and (user.groups.filter(pk=group.pk).exists() if as_moderator else user.is_superuser):
        return False
    user.is_staff = True
    if as_moderator:
        user.groups.add(group)
    else:
        user.is_superuser = True
    user.save(update_fields=["is_staff", "is_superuser"])
    return True


@transaction.atomic
def demote(*, user: User) -> bool:
    """Take all powers. Raises LastSuperuserError."""
    _require_other_superuser(user)
    user = User.objects.select_for_update().get(pk=user.pk)
    had = user.is_staff or user.is_superuser or user.groups.exists() or user.user_permissions.exists()
    user.is_staff = user.is_superuser = False
    user.save(update_fields=["is_staff", "is_superuser"])
    user.groups.clear()
    user.user_permissions.clear()
    return had


def delete_credentials(user: User) -> None:
    """Delete addresses, second factors, sessions and sign-in places."""
    listed = SessionOrigin.objects.filter(user=user).values_list("session_key", flat=True)
    Session.objects.filter(session_key__in=list(listed), user_id=user.pk).delete()
    for model in (EmailAddress, Authenticator, SessionOrigin):
        model.objects.filter(user=user).delete()


def _announce_deletion(user_id: int) -> None:
    levels_lowered.send(sender=User, user_ids_by_level={int(Level.DORMANT): [user_id]})
    account_deleted.send(sender=User, user_id=user_id)


@transaction.atomic
def issue_token(*, user: User, user_agent: str = "", ip: str = "") -> str:
    """Issue an API token, of which only the hash is stored. Raises EndedError."""
    proofs.lock_if_valid(user)
    tokens = AccessToken.objects.filter(user=user, application=OWN_APP)
    tokens.filter(expires__lt=Now()).delete()
    kept = tokens.order_by("-pk").values_list("pk", flat=True)
    tokens.filter(pk__in=list(kept[settings.TOKEN_CAP - 1 :])).delete()
    token: str = generate_token()
    expires = timezone.now() + timedelta(days=settings.TOKEN_DAYS)
    row = AccessToken(user=user, application=ClientApp.objects.own(), expires=expires)
    set_token_value(row, token)
    row.save()
    if user_agent or ip:
        TokenOrigin.objects.create(token=row, user_agent=user_agent, ip=ip)
    return token


@transaction.atomic
def revoke_token(*, token_id: int) -> bool:
    """Delete a token and end its streams."""
    token = AccessToken.objects.filter(pk=token_id)
    user_id = token.values_list("user_id", flat=True).first()
    list(User.objects.locked().filter(pk=user_id).values_list("pk"))
    _, gone = token.delete()
    if user_id is not None:
        end_streams(user_id=user_id)
    return bool(gone.get(AccessToken._meta.label))


def end_tokens(*, user: User, keep_token: int = 0) -> None:
    """Delete tokens except `keep_token`, unused codes, and streams."""
    AccessToken.objects.filter(user=user).exclude(pk=keep_token).delete()
    Grant.objects.filter(user=user).delete()
    sessions_ended.send(sender=User, user=user)
    end_streams(user_id=user.pk)


@transaction.atomic
def delete_app(*, app_id: int) -> None:
    """Remove a self-registered app with its tokens."""
    apps = ClientApp.objects.registered().filter(pk=app_id)
    tokens = AccessToken.objects.filter(application__in=apps)
    owners = tokens.filter(user__isnull=False).values_list("user_id", flat=True)
    list(User.objects.locked().filter(pk__in=list(owners)).order_by("pk").values_list("pk"))
    list(apps.select_for_update().values_list("pk"))  # a token issued meanwhile is seen below, or refused
    users = set(owners.all())
    tokens.delete()
    Grant.objects.filter(application__in=apps).delete()
    apps.delete()
    for user_id in users:
        end_streams(user_id=user_id)


def end_streams(*, user_id: int) -> None:
    """Have stream processes check the user's connections."""
    transaction.on_commit(partial(announce, Revoked(user_id)))


def refold_names() -> int:
    """Fold all names again, after `web.letters` changed. Returns how many changed."""
    changed = []
    for user in User.objects.filter(display_name__regex=r"[^\x01-\x7f]").only(
        "username", "display_name", "folded_name"
    ):
        found = folded_name(user.username, user.display_name)
        if found != user.folded_name:
            user.folded_name = found
            changed.append(user)
    return User.objects.bulk_update(changed, ["folded_name"], batch_size=1_000)
