from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from accounts.levels import policy
from accounts.levels.big_v import NotActiveError, allow_tagging, demote, make_big_v
from accounts.models import BigVChange, Level, User
from accounts.people import badge_of, badged_username
from web.admin import LogAdmin, ModeratedAdmin, confirmation_page, sentence_with_count
from web.pages import next_page, redirect_next

SHOWN = 10
"""Changes on a user's page. A list has all."""
MADE, DEMOTION, ALLOWED = (
    gettext_noop("Made a big account."),
    gettext_noop("Started making it ordinary."),
    gettext_noop("Allowed it to become big automatically again."),
)
"""What the admin's log says of these actions."""


MEANING = _(
    "Posts of an ordinary account go straight to the home timelines of all its active followers. "
    "Posts of a big account go to a few of them, and the others load them when they open home. "
    "Readers see the same posts."
)
"""Explains big accounts to admins."""


class DemotionProgress(NamedTuple):
    """Inboxes filled by a demotion, of how many."""

    done: int
    followers: int


class Cost(NamedTuple):
    """Approximate deliveries of a post."""

    as_ordinary: int
    as_big: int


def handle_column(field: str, description: Any) -> Callable[[Any], SafeString | str]:
    """A column with a related user's name and badge."""

    def column(row: Any) -> SafeString | str:
        user = getattr(row, field)
        return badged_username(user) if user else "-"

    column.__name__ = field
    return admin.display(column, description=description, ordering=field)


class BigVAdmin(ModeratedAdmin):
    """Base of user admins: makes users big-Vs or ordinary again. `next` is the page to return to."""

    def followers(self, user: Any) -> int:
        """The user's number of followers."""
        raise NotImplementedError

    def progress(self, user: Any) -> DemotionProgress | None:
        """The progress of the user's running demotion, or None. Subclasses override it."""
        return None

    def may_change(self, request: HttpRequest, user: User) -> bool:
        """Guess, without a query, whether the caller may change the user. The action checks exactly."""
        return self.has_change_permission(request) and (
            bool(getattr(request.user, "is_superuser", False)) or not (user.is_staff or user.is_superuser)
        )

    def if_permitted(self, request: HttpRequest, verb: Callable[[User], bool]) -> Callable[[User], bool]:
        """The action for users that the caller may change. For others it does nothing and returns False."""
        return lambda user: self.has_change_permission(request, user) and verb(user)

    def cost(self, user: Any) -> Cost:
        """The deliveries of a post by the user. Subclasses override it."""
        raise NotImplementedError

    # --- Pages
    def big_v_column(self, request: HttpRequest) -> Callable[[Any], SafeString]:
        """The list's column with state and buttons."""
        here = request.get_full_path()

        @admin.display(description=_("big account"), ordering="is_big_v")
        def big_v(user: Any) -> SafeString:
            may = self.may_change(request, user)
            context = {"user": user, "progress": self.progress(user), "may_change": may, "next": here}
            return SafeString(render_to_string("admin/accounts/user/_big_v_cell.html", context))

        return big_v

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Add history and buttons."""
        if obj is not None:
            context |= {"big_v": self._panel(request, obj)}
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _panel(self, request: HttpRequest, user: Any) -> dict[str, Any]:
        changes = list(user.big_v_changes.select_related("by").order_by("-id")[: SHOWN + 1])
        opts = BigVChange._meta
        every = f"{reverse('admin:accounts_bigvchange_changelist')}?user__id__exact={user.pk}"
        return {
            "progress": self.progress(user),
            "may_change": self.has_change_permission(request, user),
            "threshold": settings.BIG_V_THRESHOLD,
            "meaning": MEANING,
            "followers": self.followers(user),
            "cost": self.cost(user),
            "pushed": _delivery_text(),
            "changes": changes[:SHOWN],
            "all": every if request.user.has_perm(f"{opts.app_label}.view_{opts.model_name}") else "",
            "are_more": len(changes) > SHOWN,
        }

    # --- The verbs
    def get_urls(self) -> list[URLPattern]:
        """Add the addresses of actions."""
        verbs = [
            path(f"<int:user_id>/big-v/{verb}/", self.admin_site.admin_view(view), name=f"accounts_user_big_v_{verb}")
            for verb, view in (("make", self.make_view), ("demote", self.demote_view), ("allow", self.allow_view))
        ]
        return [*verbs, *super().get_urls()]

    def make_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Make a user big-V, perhaps asking first."""
        user = self._user_to_change(request, user_id)
        if user is None or request.method != "POST":
            return self._redirect_unchanged(request, user_id, user)
        progress = self.progress(user)
        name = {"name": f"@{user.username}"}
        if user.is_active and not user.is_big_v and "confirmed" not in request.POST:
            return confirmation_page(
                self.admin_site,
                request,
                self.opts,
                **self.about_promotion(user),
                lines=[self.name_and_fans(user), self._costs(user)],
                fields=[("next", next_page(request))],
            )
        try:
            changed = make_big_v(user=user, by=request.user)  # type: ignore[arg-type]
        except NotActiveError:
            words = gettext("%(name)s is deactivated. Reactivate the account first.")
            return self._redirect_with_message(request, user, words % name, messages.ERROR)
        if not changed:
            return self._redirect_with_message(
                request, user, gettext("%(name)s is already a big account.") % name, messages.WARNING
            )
        self.log_change(request, user, MADE)
        if user.is_big_v and progress:
            words = gettext("%(name)s stays a big account.")
        else:
            words = gettext("%(name)s is a big account now.")
        return self._redirect_with_message(request, user, words % name, messages.SUCCESS)

    def demote_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Ask, then demote."""
        user = self._user_to_change(request, user_id)
        if user is None:
            return self._redirect_unchanged(request, user_id, user)
        name = {"name": f"@{user.username}"}
        if not user.is_big_v:
            return self._redirect_with_message(
                request, user, gettext("%(name)s is an ordinary account.") % name, messages.WARNING
            )
        if self.progress(user):
            words = gettext("%(name)s is already becoming ordinary.")
            return self._redirect_with_message(request, user, words % name, messages.WARNING)
        if request.method != "POST" or "confirmed" not in request.POST:
            return confirmation_page(
                self.admin_site,
                request,
                self.opts,
                **self.about_demotion(user),
                lines=[self.name_and_fans(user)],
                fields=[("next", next_page(request))],
            )
        if not demote(user=user, by=request.user):  # type: ignore[arg-type]
            words = gettext("%(name)s is already becoming ordinary.")
            return self._redirect_with_message(request, user, words % name, messages.WARNING)
        self.log_change(request, user, DEMOTION)
        words = gettext("%(name)s is becoming ordinary. We're filling its followers' home timelines.")
        return self._redirect_with_message(request, user, words % name, messages.SUCCESS)

    def allow_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Allow automatic tagging again, by POST."""
        user = self._user_to_change(request, user_id)
        if user is None or request.method != "POST":
            return self._redirect_unchanged(request, user_id, user)
        name = {"name": f"@{user.username}"}
        if not allow_tagging(user=user, by=request.user):  # type: ignore[arg-type]
            words = gettext("%(name)s can already become big automatically.")
            return self._redirect_with_message(request, user, words % name, messages.WARNING)
        self.log_change(request, user, ALLOWED)
        words = gettext("%(name)s can become big automatically again.")
        return self._redirect_with_message(request, user, words % name, messages.SUCCESS)

    def _costs(self, user: Any) -> str:
        cost = self.cost(user)
        words = gettext("A post goes to about %(now)s followers now, and to about %(then)s afterwards.")
        return words % {"now": _number(cost.as_ordinary), "then": _number(cost.as_big)}

    def about_promotion(self, user: Any) -> dict[str, str]:
        """Texts of the question before a promotion."""
        total = {"followers": _followers_text(self.followers(user))}
        return {
            "title": gettext("Make big"),
            "meaning": f"{MEANING} {_delivery_text()}",
            "button": gettext("Make big, with %(followers)s") % total,
        }

    def about_demotion(self, user: Any) -> dict[str, str]:
        """Texts of the question before a demotion."""
        total = {"followers": _followers_text(self.followers(user))}
        meaning = gettext(
            "We fill the home timelines of %(followers)s in the background. Until that's done it stays a "
            "big account, and every follower sees every post. You can still choose “Keep big” in the "
            "list or on its page. Afterwards it won't become big automatically until an admin allows "
            "that or makes it big."
        )
        return {
            "title": gettext("Make ordinary"),
            "meaning": meaning % total,
            "button": gettext("Make ordinary, with %(followers)s") % total,
        }

    def name_and_fans(self, user: Any) -> str:
        """Username and number of followers."""
        return f"{user.username}: {_followers_text(self.followers(user))}"

    def _user_to_change(self, request: HttpRequest, user_id: int) -> User | None:
        user = self.get_object(request, str(user_id))
        if not self.has_change_permission(request, user):
            raise PermissionDenied
        return user

    def _redirect_unchanged(self, request: HttpRequest, user_id: int, user: User | None) -> HttpResponse:
        """Redirect without a change: the user does not exist, or a log-in in between turned the POST into a GET."""
        if user is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, str(user_id))  # type: ignore[attr-defined, no-any-return]
        words = gettext("Nothing has changed. Press the button again.")
        return self._redirect_with_message(request, user, words, messages.WARNING)

    def _redirect_with_message(self, request: HttpRequest, user: User, words: str, level: int) -> HttpResponse:
        self.message_user(request, words, level)
        return redirect_next(request, "admin:accounts_user_change", user.pk)


def _delivery_text() -> str:
    push_level = policy.current().push_level
    if push_level > Level.DAILY:
        return gettext("On this site, posts of big accounts are delivered to no followers.")
    words = gettext("On this site, posts of big accounts are delivered to followers seen %(level)s.")
    return words % {"level": Level(push_level).label}


def _number(count: int) -> str:
    return number_format(count, force_grouping=True)


def _followers_text(count: int) -> str:
    return sentence_with_count(lambda n: ngettext("%(count)s follower", "%(count)s followers", n), count)


@admin.register(BigVChange)
class BigVChangeAdmin(LogAdmin):
    """The history of big-Vs."""

    list_display = ("at", "of", "kind", "origin", handle_column("by", _("by")))
    list_display_links = None
    list_filter = ("kind", "origin")
    list_select_related = ("user", "by")
    sortable_by = ()
    search_fields = ("=user__username",)
    search_help_text = _("Full username.")
    fields = readonly_fields = ("user", "at", "kind", "origin", "by")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Add an explanation."""
        return super().changelist_view(request, {"meaning": MEANING, **(extra_context or {})})

    @admin.display(description=_("user"))
    def of(self, change: BigVChange) -> SafeString:
        """The user, linked, with the badge."""
        address = reverse("admin:accounts_user_change", args=[change.user_id])
        return format_html('<a href="{}">@{}</a>{}', address, change.user.username, badge_of(change.user))
