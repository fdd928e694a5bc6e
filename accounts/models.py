"""Users, big-V history, sessions, deletions and policy."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.contrib.auth.models import AbstractBaseUser, PermissionsMixin
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.contrib.postgres.indexes import GinIndex
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Func, Q
from django.db.models.functions import Lower, Now
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from accounts import avatars, passwords
from accounts.joining_models import Application, Invitation, Invited
from accounts.lookalikes import Skeleton, skeleton
from accounts.names import ComparableName, FoldedName, Grams, Name, grams_of
from accounts.naming import check_display_name
from accounts.signing_in_models import ClientApp
from storage.claims import ClaimedRow
from storage.draws import Draw
from storage.site_key import known_keys
from web.languages import CODE_LENGTH
from web.letters import folded

__all__ = ["Application", "ClientApp", "Invitation", "Invited"]  # models of this app in other modules

RESERVED_USERNAMES = frozenset(
    {"me", "new", "admin", "api", "static", "login", "logout", "signup", "items", "settings"}
)

USERNAME_LENGTH = 30
username_pattern = RegexValidator(
    r"^[A-Za-z0-9_-]{1,30}\Z", _("1 to 30 letters (a to z), digits, hyphens or underscores."), code="invalid"
)


def is_username(text: str) -> bool:
    """Whether it can be a username."""
    try:
        username_pattern(text)
    except ValidationError:
        return False
    return True


def not_reserved(username: str) -> None:
    """Raise ValidationError for names of pages."""
    if username.lower() in RESERVED_USERNAMES:
        raise ValidationError(_("This name is reserved."), code="reserved")


class Level(models.IntegerChoices):
    """How recently a user was seen. It sets the inbox's length."""

    DORMANT = 0, _("dormant")
    MONTHLY = 1, _("within a month")
    WEEKLY = 2, _("within a week")
    DAILY = 3, _("within a day")


class QuotableBy(models.TextChoices):
    """Who may quote a user's public posts, besides the user."""

    EVERYONE = "everyone", _("Everyone")
    FOLLOWERS = "followers", _("Followers")
    NOBODY = "nobody", _("Only me")


class RepliableBy(models.TextChoices):
    """Who may reply in a thread, besides the sender of its root. Only the root's choice counts."""

    EVERYONE = "everyone", _("Everyone")
    FOLLOWERS = "followers", _("Followers")
    MENTIONED = "mentioned", _("People I mention")
    NOBODY = "nobody", _("Only me")


class PostedTo(models.TextChoices):
    """The first choice of who may see a user's posts."""

    PUBLIC = "public", _("Everyone")
    FOLLOWERS = "followers", _("Followers")


class TextSize(models.TextChoices):
    """The size of the text of pages."""

    SMALL = "small", pgettext_lazy("text size", "Small")
    USUAL = "", pgettext_lazy("text size", "Normal")
    LARGE = "large", pgettext_lazy("text size", "Large")
    LARGER = "larger", pgettext_lazy("text size", "Very large")


class UserQuerySet(models.QuerySet["User"]):
    """Reads users."""

    def active(self) -> Self:
        """Users who can sign in and be seen."""
        return self.filter(is_active=True)

    def named(self, username: str) -> Self:
        """The user with this name, in any case. Nobody, without a query, for a text that can't be one."""
        if not is_username(username):
            return self.none()
        return self.alias(lower_username=Lower("username")).filter(lower_username=username.lower())

    def similar_to(self, username: str) -> Self:
        """Users with look-alike usernames (accounts/lookalikes.py)."""
        return self.alias(skeleton=Skeleton("username")).filter(skeleton=skeleton(username))

    def with_email(self, address: str) -> Self:
        """Users with this e-mail address, in any case."""
        return self.exclude(email="").alias(lower_email=Lower("email")).filter(lower_email=address.lower())

    def called(self, name: str) -> Self:
        """Users with every word of `name` in their names."""
        words = folded(name).split()
        found = self.alias(known_as=ComparableName(), grams=Grams(Name()), folded_grams=Grams("folded_name")).filter(
            Q(grams__contains=grams_of(words)) | Q(folded_name__isnull=False, folded_grams__contains=grams_of(words))
        )
        for word in words:
            found = found.filter(known_as__contains=word)
        return found

    def locked(self) -> Self:
        """Lock the users' rows. Others can still write rows that refer to them."""
        return self.select_for_update(no_key=True)

    def advance_epoch(self) -> int:
        """Invalidate these users' windows."""
        return self.update(window_epoch=Draw())


if TYPE_CHECKING:  # mypy's plugin makes the other one too late, but not each time

    class _Verbs(UserQuerySet, DjangoUserManager["User"]):  # type: ignore[misc]
        pass

else:
    _Verbs = DjangoUserManager.from_queryset(UserQuerySet)


class UserManager(_Verbs):
    """`UserQuerySet` with Django's ways to create users."""

    def get_queryset(self) -> UserQuerySet:
        return UserQuerySet(self.model, using=self._db)

    def advance_epoch_of(self, user_id: int) -> None:
        """Invalidate one user's windows (`UserQuerySet.advance_epoch`)."""
        self.filter(pk=user_id).advance_epoch()

    def get_by_natural_key(self, username: str | None) -> "User":
        """The user with this name, in any case. Nobody for a text that cannot be one."""
        return self.named(username or "").get()

    def create_superuser(self, username: str, password: str | None = None, **fields: Any) -> "User":  # type: ignore[override]
        """Create a superuser of the highest level."""
        user = self.model(username=username, is_staff=True, is_superuser=True, level=Level.DAILY, **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser, PermissionsMixin):  # type: ignore[django-manager-missing]  # ClientApp's base has no types
    """A person or program that publishes, follows and reads.

    Each change that shows the user older items draws a `window_epoch`; windows of another one are not used.
    `follower_count` is exact only with relations.FollowerCountChange. `session_epoch` counts how often all sessions
    ended at once. PostgreSQL draws `session_generation` when a session ends early or changes. `deleted_at`: personal
    data is gone, and a constraint keeps the account inactive.
    """

    username = models.CharField(
        _("username"),
        max_length=USERNAME_LENGTH,
        unique=True,
        validators=[username_pattern, not_reserved],
        error_messages={"unique": _("This username is taken.")},
    )
    display_name = models.CharField(_("display name"), max_length=50, blank=True, validators=[check_display_name])
    folded_name = FoldedName()
    bio = models.CharField(_("bio"), max_length=500, blank=True)
    profile_fields = models.JSONField(
        _("fields"), default=list, db_default=[], blank=True, help_text=_("Pairs of a name and a value.")
    )
    email = models.EmailField(_("email"), blank=True)
    language = models.CharField(
        _("language"),
        max_length=10,
        blank=True,
        default="",
        db_default="",
        help_text="Of settings.LANGUAGES; empty: the browser's.",
    )
    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="An IANA name; empty: the browser's.",
    )
    avatar = models.JSONField(null=True, editable=False, help_text="The facts of a picture (media.objects).")
    banner = models.JSONField(null=True, editable=False, help_text="The same.")
    keeps_history = models.BooleanField(
        default=True, db_default=True, help_text="Whether what the user opens is remembered for a while."
    )
    dismissed_announcement = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The announcement that an app has shown the user (accounts.about.announcing.mark).",
    )
    is_indexable = models.BooleanField(
        default=True, db_default=True, help_text="Whether search engines may list the profile and its posts."
    )
    quotable_by = models.CharField(
        max_length=16,
        choices=QuotableBy.choices,
        default=QuotableBy.EVERYONE,
        db_default=QuotableBy.EVERYONE,
        help_text="Who may quote what the user publishes from now on.",
    )
    post_visibility = models.CharField(
        max_length=16,
        choices=PostedTo.choices,
        default=PostedTo.PUBLIC,
        db_default=PostedTo.PUBLIC,
        help_text="The first choice for new posts.",
    )
    post_repliable_by = models.CharField(
        max_length=16,
        choices=RepliableBy.choices,
        default=RepliableBy.EVERYONE,
        db_default=RepliableBy.EVERYONE,
        help_text="The first choice for new posts.",
    )
    post_sensitive = models.BooleanField(
        default=False, db_default=False, help_text="Whether pictures of new posts are blurred by default."
    )
    post_language = models.CharField(
        max_length=CODE_LENGTH, blank=True, default="", db_default="", help_text="What the user writes in."
    )
    plays_videos = models.BooleanField(
        default=False, db_default=False, help_text="Whether videos in view play by themselves, without sound."
    )
    takes_requests = models.BooleanField(
        default=True, db_default=True, help_text="Whether strangers may write to the user in private mentions."
    )
    hides_suggestions = models.BooleanField(
        default=False, db_default=False, help_text="Whether pages propose nobody to follow."
    )
    text_size = models.CharField(
        max_length=8,
        choices=TextSize.choices,
        blank=True,
        default=TextSize.USUAL,
        db_default=TextSize.USUAL,
        help_text="Of pages.",
    )
    enter_sends = models.BooleanField(
        default=True, db_default=True, help_text="Whether Enter sends a message, where there is a keyboard."
    )
    is_locked = models.BooleanField(
        _("approves followers"), default=False, db_default=False, help_text=_("They approve each new follower.")
    )
    is_big_v = models.BooleanField(_("big account"), default=False)
    is_auto_big_v = models.BooleanField(
        _("becomes big automatically"),
        default=True,
        db_default=True,
        editable=False,
        help_text="Whether reaching the threshold makes the user big-V. A demotion by hand turns it off.",
    )
    level = models.SmallIntegerField(_("level"), choices=Level.choices, default=Level.DORMANT)
    last_seen_at = models.DateTimeField(_("last seen"), null=True, blank=True)
    window_epoch = models.BigIntegerField(db_default=Draw(), editable=False)
    push_generation = models.IntegerField(
        default=1, db_default=1, editable=False, help_text="Advanced by every lowering of the level."
    )
    promotion = models.BigIntegerField(
        default=0, db_default=0, editable=False, help_text="Drawn whenever the user becomes big-V."
    )
    following_count = models.IntegerField(_("following"), default=0, editable=False)
    uncounted_followees = models.SmallIntegerField(
        default=0, db_default=0, editable=False, help_text="Hidden ones among `following_count`."
    )
    follower_count = models.IntegerField(_("followers"), default=0, editable=False)
    followed_tag_count = models.SmallIntegerField(
        default=0, db_default=0, editable=False, help_text="Readers who follow hashtags have statements of their own."
    )
    is_staff = models.BooleanField(_("staff"), default=False)
    is_active = models.BooleanField(_("active"), default=True)
    deleted_at = models.DateTimeField(_("deleted"), null=True, blank=True, editable=False)
    session_epoch = models.IntegerField(default=0, db_default=0, editable=False)
    session_generation = models.BigIntegerField(default=0, db_default=0, editable=False)
    filters_version = models.BigIntegerField(
        default=0, db_default=0, editable=False, help_text="Drawn by every change of the user's filters; 0 without any."
    )
    date_joined = models.DateTimeField(_("joined"), db_default=Now())

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("users")
        constraints = [
            models.UniqueConstraint(
                Lower("username"),
                name="user_lower_username",
                violation_error_message=_("This username is taken."),
            ),
            models.CheckConstraint(condition=models.Q(level__range=(0, 3)), name="user_level"),
            models.CheckConstraint(
                condition=models.Q(deleted_at=None) | models.Q(is_active=False), name="user_deleted_for_good"
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(is_big_v=True), name="user_big_v"),
            models.Index(fields=["id"], condition=models.Q(is_active=False), name="user_inactive"),
            models.Index(fields=["id"], condition=models.Q(is_superuser=True), name="user_superuser"),
            models.Index(fields=["level", "last_seen_at"], name="user_level_seen"),
            # Users who may have an inbox, for samples.
            models.Index(fields=["id"], condition=models.Q(level__gt=0), name="user_awake"),
            # Active users by followers, for suggestions.
            models.Index(
                fields=["-follower_count", "id"], condition=models.Q(is_active=True), name="user_most_followed"
            ),
            # All users by followers, for the admin.
            models.Index(fields=["-follower_count", "-id"], name="user_by_followers"),
            models.Index(Lower("email"), condition=~models.Q(email=""), name="user_email"),
            # accounts/sql/names.sql defines the functions.
            GinIndex(
                Func(Func("username", "display_name", function="feedsite_name"), function="feedsite_grams"),
                name="user_names",
            ),
            GinIndex(
                Func("folded_name", function="feedsite_grams"),
                condition=Q(folded_name__isnull=False),
                name="user_folded_names",
            ),
            # accounts/sql/lookalikes.sql defines the function.
            models.Index(Skeleton("username"), name="user_skeleton"),
        ]

    def __str__(self) -> str:
        return self.username

    @property
    def name(self) -> str:
        """Display name, else username."""
        return self.display_name or self.username

    @property
    def avatar_url(self) -> str:
        """The avatar's address, drawn by default."""
        return avatars.avatar_url(self.avatar, self.username, self.name)

    @property
    def banner_url(self) -> str:
        """The banner's address, drawn by default."""
        return avatars.banner_url(self.banner, self.username)

    def set_password(self, raw_password: str | None) -> None:
        """Set a password. None: one that nothing opens."""
        super().set_password(None if raw_password is None else passwords.normalized(raw_password))

    def check_password(self, raw_password: str | None) -> bool:
        """Whether this is the password. A log-in renews old hashes: elsewhere that would end the caller's session."""
        return raw_password is not None and passwords.compare(raw_password, self.password).is_right

    def get_full_name(self) -> str:
        """The shown name."""
        return self.name

    def get_short_name(self) -> str:
        """The username."""
        return self.username

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """A hash of password and session epoch. A change of either ends all sessions."""
        value = f"{self.password} {self.session_epoch}"
        return salted_hmac("accounts.User.session", value, secret=secret, algorithm="sha256").hexdigest()


class BigVChange(models.Model):
    """An entry in a user's big-V history."""

    class Kind(models.TextChoices):
        MADE = "made", _("made a big account")
        DEMOTION = "demotion", _("started making it ordinary")
        TAKEN_BACK = "taken_back", _("kept big")
        DEMOTED = "demoted", _("ordinary: followers' home timelines filled")
        ALLOWED = "allowed", _("can become big automatically again")

    class Origin(models.TextChoices):
        AUTOMATIC = "automatic", _("automatically")
        ADMIN = "admin", _("by an admin")
        COMMAND = "command", _("by a command")

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="big_v_changes", db_index=False, verbose_name=_("user")
    )
    at = models.DateTimeField(_("at"), db_default=Now())
    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices)
    origin = models.CharField(_("origin"), max_length=16, choices=Origin.choices)
    by = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
        verbose_name=_("by"),
        help_text="The admin; empty for what happened automatically or by a command.",
    )

    class Meta:
        verbose_name = _("big account change")
        verbose_name_plural = _("big account changes")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["user", "-id"], name="big_v_change_of_user")]

    def __str__(self) -> str:
        return str(self.get_kind_display())


class Session(AbstractBaseSession):
    """Django's session rows, with their user.

    Triggers draw the user's `session_generation` when any program removes or changes an unexpired row. Rows of old
    versions have no `user_id`. No foreign key: the table is Django's.
    """

    user_id = models.BigIntegerField(null=True)

    class Meta(AbstractBaseSession.Meta):
        managed = False
        db_table = "django_session"
        default_permissions = ()


class SessionOrigin(models.Model):
    """Where and when a browser's session was seen. It ends with the session, by a foreign key of PostgreSQL alone."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40, unique=True)
    user_agent = models.CharField(max_length=200)
    ip = models.GenericIPAddressField()
    created_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)
    data = models.JSONField(default=dict, db_default={}, help_text="Only the version before writes it.")

    class Meta:
        db_table = "usersessions_usersession"  # allauth made it
        default_permissions = ()

    def __str__(self) -> str:
        return self.user_agent


class Deletion(models.Model):
    """A deletion in progress, the queue for accounts/purge.py."""

    user = models.OneToOneField(
        User, on_delete=models.CASCADE, primary_key=True, related_name="+", verbose_name=_("user")
    )
    created_at = models.DateTimeField(_("requested at"), db_default=Now())
    tried_at = models.DateTimeField(_("last tried"), null=True, help_text=_("When a worker last worked on it."))
    attempts = models.IntegerField(_("attempts"), default=0)

    class Meta:
        verbose_name = _("account deletion")
        verbose_name_plural = _("account deletions")

    def __str__(self) -> str:
        return str(_("deletion of @%(name)s") % {"name": self.user.username})


class Recount(ClaimedRow):
    """A user was hidden or shown, and others' counts follow (accounts.recounting). The newest of a user counts."""

    user_id = models.BigIntegerField(db_index=True)
    places = models.JSONField(default=dict, help_text="The last row of each kind.")
    is_second = models.BooleanField(default=False, help_text="Whether it is the walk for late writes.")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"counts of {self.user_id}"


class HeldName(models.Model):
    """The name of a deleted account, which nobody gets again, as a keyed hash: names are personal data.

    Names are held while the secret key of their hash is known (storage.site_key.known_keys).
    """

    digest = models.CharField(max_length=64, primary_key=True)

    def __str__(self) -> str:
        return self.digest

    @staticmethod
    def digests_of(username: str) -> set[str]:
        """Hashes of a username's lower case and look-alikes, by every known secret key."""
        return {
            salted_hmac("accounts.HeldName", text, secret=key, algorithm="sha256").hexdigest()
            for text in {username.lower(), skeleton(username)}
            for key in known_keys()
        }


class Timeline(models.Func):
    """PostgreSQL's timeline number, which a standby's promotion changes. NULL on a standby."""

    function = "feedsite_timeline"
    arity = 0
    output_field = models.BigIntegerField()


class Policy(models.Model):
    """Which readers have an inbox, and which receive big-Vs' posts there."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    push_level = models.SmallIntegerField(
        _("push level"),
        validators=[MinValueValidator(1), MaxValueValidator(4)],
        help_text=_("Posts of big accounts are delivered to followers at this level or above. 4: to nobody."),
    )
    inbox_from = models.IntegerField(
        _("inbox from"),
        default=0,
        db_default=0,
        validators=[MinValueValidator(0), MaxValueValidator(100_000)],
        help_text=_(
            "Readers who follow fewer people have no inbox: a query builds their pages. 0: every active reader has one."
        ),
    )
    generation = models.BigIntegerField(db_default=Draw(), editable=False)
    drawn_on = models.BigIntegerField(db_default=Timeline(), null=True, editable=False)
    timeline = models.BigIntegerField(db_default=Timeline(), null=True, editable=False)

    class Meta:
        verbose_name = _("delivery policy")
        verbose_name_plural = _("delivery policy")
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="policy_one_row"),
            models.CheckConstraint(condition=models.Q(push_level__range=(1, 4)), name="policy_push_level"),
            models.CheckConstraint(condition=models.Q(inbox_from__range=(0, 100_000)), name="policy_inbox_from"),
            models.CheckConstraint(
                condition=models.Q(inbox_from=0) | models.Q(timeline=None), name="policy_for_older_versions"
            ),
        ]

    def __str__(self) -> str:
        words = gettext("push level %(push_level)s, inbox from %(inbox_from)s follows")
        return words % {"push_level": self.push_level, "inbox_from": self.inbox_from}


class EmailAddress(models.Model):
    """An address of a user, in lower case: accounts/addresses.py."""

    id = models.AutoField(primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    email = models.EmailField(db_index=True)
    verified = models.BooleanField(default=False)
    primary = models.BooleanField(default=False)

    class Meta:
        db_table = "account_emailaddress"  # allauth made it
        default_permissions = ()
        unique_together = [("user", "email")]
        constraints = [
            models.UniqueConstraint(fields=["email"], condition=Q(verified=True), name="unique_verified_email"),
            models.UniqueConstraint(fields=["user", "primary"], condition=Q(primary=True), name="unique_primary_email"),
        ]

    def __str__(self) -> str:
        return self.email


class Authenticator(models.Model):
    """A second factor, or the recovery codes: accounts/signing_in/second_factors.py."""

    class Type(models.TextChoices):
        """What it is. `data` depends on it."""

        RECOVERY_CODES = "recovery_codes"
        TOTP = "totp"
        WEBAUTHN = "webauthn"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    type = models.CharField(max_length=20, choices=Type.choices)
    data = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "mfa_authenticator"  # allauth made it
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["user", "type"],
                condition=Q(type__in=("totp", "recovery_codes")),
                name="unique_authenticator_type",
            )
        ]

    def __str__(self) -> str:
        """A passkey's name."""
        return str(self.data.get("name", self.type))


class AddressCheck(models.Model):
    """Link and code of the last letter for an unconfirmed address, as keyed hashes. After a few `tries` only the link
    is valid.
    """

    address = models.OneToOneField(EmailAddress, on_delete=models.CASCADE, primary_key=True, related_name="check_of")
    key_digest = models.CharField(max_length=64)
    code_digest = models.CharField(max_length=64)
    tries = models.SmallIntegerField(default=0, db_default=0)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"check of address {self.address_id}"


class ResetRequest(models.Model):
    """A request for a password reset letter, written whether the account exists or not."""

    asked = models.CharField(max_length=254)
    language = models.CharField(max_length=10, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"request {self.pk}"


class TokenOrigin(models.Model):
    """Where an API token was issued, or for which code an app's token."""

    token = models.OneToOneField(
        "oauth2_provider.AccessToken", on_delete=models.CASCADE, primary_key=True, related_name="origin"
    )
    user_agent = models.CharField(max_length=200, blank=True)
    ip = models.CharField(max_length=45, blank=True)
    code_digest = models.CharField(max_length=64, null=True)  # noqa: DJ001 (a reference)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["code_digest"], condition=Q(code_digest__isnull=False), name="token_code"),
        ]

    def __str__(self) -> str:
        return self.user_agent
