"""Big-Vs in the admin: the state, the verbs and the history of each user, on their page and in the list."""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from accounts.levels import policy
from accounts.levels.big_v import NotActiveError, allow_tagging, demote, make_big_v
from accounts.models import BigVChange, Level, User
from accounts.people import badge_of, handle_of
from web.admin import LogAdmin, ModeratedAdmin, ask, counted
from web.pages import go_on, next_page

SHOWN = 10
"""Changes on the page of a user; a list has all of them."""
MADE, DEMOTION, ALLOWED = (
    gettext_noop("Made big-V."),
    gettext_noop("Asked for a demotion from big-V."),
    gettext_noop("Allowed automatic tagging again."),
)
"""For the log of the admin."""


class Progress(NamedTuple):
    """How far a demotion is: followers whose inbox is filled, of how many."""

    done: int
    followers: int


def handle_column(field: str, description: Any) -> Callable[[Any], SafeString | str]:
    """A column of a list for a field that is a user: the username, with the badge of a big-V. The list selects the user
    with its rows.
    """

    def column(row: Any) -> SafeString | str:
        user = getattr(row, field)
        return handle_of(user) if user else "-"

    column.__name__ = field
    return admin.display(column, description=description, ordering=field)


class BigVAdmin(ModeratedAdmin):
    """Users as big-Vs. The verbs are forms of their own: `{user}/big-v/{verb}/`, with `next` to come back to."""

    def followers(self, user: Any) -> int:
        """The number of the user's followers."""
        raise NotImplementedError

    def progress(self, user: Any) -> Progress | None:
        """The demotion under way; the room that fills the inboxes says how far it is."""
        return None

    def may_change(self, request: HttpRequest, user: User) -> bool:
        """Whether a row of a list offers the change: has_change_permission without a query. The verb itself asks
        exactly.
        """
        return self.has_change_permission(request) and (
            bool(getattr(request.user, "is_superuser", False)) or not (user.is_staff or user.is_superuser)
        )

    def unless_barred(self, request: HttpRequest, verb: Callable[[User], bool]) -> Callable[[User], bool]:
        """The verb, for those whom the one who asks may change."""
        return lambda user: self.has_change_permission(request, user) and verb(user)

    # --- Pages
    def big_v_column(self, request: HttpRequest) -> Callable[[Any], SafeString]:
        """The column of the list that has the state and the buttons. They are in the list's own form."""
        here = request.get_full_path()

        @admin.display(description=_("big-V"), ordering="is_big_v")
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
        """The form, with the user's history as big-V and its buttons."""
        if obj is not None:
            context |= {"big_v": self._panel(request, obj)}
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _panel(self, request: HttpRequest, user: Any) -> dict[str, Any]:
        changes = list(user.big_v_changes.select_related("by").order_by("-id")[: SHOWN + 1])
        opts = BigVChange._meta
        push_level = policy.current().push_level
        every = f"{reverse('admin:accounts_bigvchange_changelist')}?user__id__exact={user.pk}"
        return {
            "progress": self.progress(user),
            "may_change": self.has_change_permission(request, user),
            "threshold": settings.BIG_V_THRESHOLD,
            "pushes": push_level <= Level.DAILY,
            "push_level": push_level,
            "changes": changes[:SHOWN],
            "all": every if request.user.has_perm(f"{opts.app_label}.view_{opts.model_name}") else "",
            "are_more": len(changes) > SHOWN,
        }

    # --- The verbs of one user
    def get_urls(self) -> list[URLPattern]:
        """The admin's own addresses, and those of making and demoting big-Vs."""
        verbs = [
            path(f"<int:user_id>/big-v/{verb}/", self.admin_site.admin_view(view), name=f"accounts_user_big_v_{verb}")
            for verb, view in (("make", self.make_view), ("demote", self.demote_view), ("allow", self.allow_view))
        ]
        return [*verbs, *super().get_urls()]

    def make_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Make a user big-V, by POST; then go back."""
        user = self._asked(request, user_id)
        if user is None or request.method != "POST":
            return self._refused(request, user_id, user)
        progress = self.progress(user)
        name = {"name": f"@{user.username}"}
        try:
            changed = make_big_v(user=user, by=request.user)  # type: ignore[arg-type]
        except NotActiveError:
            words = gettext("%(name)s is deactivated, and is not made big-V. Reactivate the account first.")
            return self._told(request, user, words % name, messages.ERROR)
        if not changed:
            return self._told(request, user, gettext("%(name)s is big-V already.") % name, messages.WARNING)
        self.log_change(request, user, MADE)
        if user.is_big_v and progress:
            words = gettext("The demotion of %(name)s was taken back: they stay big-V.")
        else:
            words = gettext("%(name)s is big-V now.")
        return self._told(request, user, words % name, messages.SUCCESS)

    def demote_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Asks first."""
        user = self._asked(request, user_id)
        if user is None:
            return self._refused(request, user_id, user)
        name = {"name": f"@{user.username}"}
        if not user.is_big_v:
            return self._told(request, user, gettext("%(name)s is no big-V.") % name, messages.WARNING)
        if self.progress(user):
            words = gettext("%(name)s is being demoted already.")
            return self._told(request, user, words % name, messages.WARNING)
        if request.method != "POST" or "confirmed" not in request.POST:
            return ask(
                self.admin_site,
                request,
                self.opts,
                **self.about_demotion([user]),
                lines=[self.name_and_fans(user)],
                fields=[("next", next_page(request))],
            )
        if not demote(user=user, by=request.user):  # type: ignore[arg-type]
            words = gettext("%(name)s is being demoted already.")
            return self._told(request, user, words % name, messages.WARNING)
        self.log_change(request, user, DEMOTION)
        words = gettext("%(name)s is being demoted: the inboxes of their followers are being filled.")
        return self._told(request, user, words % name, messages.SUCCESS)

    def allow_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Let automatic tagging make the user big-V again, by POST; then go back."""
        user = self._asked(request, user_id)
        if user is None or request.method != "POST":
            return self._refused(request, user_id, user)
        name = {"name": f"@{user.username}"}
        if not allow_tagging(user=user, by=request.user):  # type: ignore[arg-type]
            words = gettext("Automatic tagging was on for %(name)s already.")
            return self._told(request, user, words % name, messages.WARNING)
        self.log_change(request, user, ALLOWED)
        words = gettext("%(name)s is tagged automatically again.")
        return self._told(request, user, words % name, messages.SUCCESS)

    def about_demotion(self, users: list[Any]) -> dict[str, str]:
        """The words of a page that asks whether these are to be demoted: how many inboxes are filled."""
        total = {"followers": _fans(sum(self.followers(user) for user in users))}
        meaning = gettext(
            "Demoting fills the inboxes of %(followers)s in the background. Until that is done the flag stands, "
            "and every follower sees every post. While it runs it can be taken back, in the list and on their page. "
            "Afterwards they are not tagged automatically, until an admin allows it again or makes them big-V."
        )
        return {
            "title": gettext("Demote from big-V"),
            "meaning": meaning % total,
            "button": gettext("Demote, and fill the inboxes of %(followers)s") % total,
        }

    def name_and_fans(self, user: Any) -> str:
        """The username with the number of followers, for people."""
        return f"{user.username}: {_fans(self.followers(user))}"

    def _asked(self, request: HttpRequest, user_id: int) -> User | None:
        """The user whom a verb is for, if there is one. Raises PermissionDenied."""
        user = self.get_object(request, str(user_id))
        if not self.has_change_permission(request, user):
            raise PermissionDenied
        return user

    def _refused(self, request: HttpRequest, user_id: int, user: User | None) -> HttpResponse:
        """No such user; or a GET, to which a login leads that was needed between the page and its button."""
        if user is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, str(user_id))  # type: ignore[attr-defined, no-any-return]
        words = gettext("Nothing was changed. Press the button again.")
        return self._told(request, user, words, messages.WARNING)

    def _told(self, request: HttpRequest, user: User, words: str, level: int) -> HttpResponse:
        self.message_user(request, words, level)
        return go_on(request, "admin:accounts_user_change", user.pk)

    # --- The verbs of many
    @admin.action(description=_("Make big-V"), permissions=["change"])
    def make_big_v(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Make the chosen users big-V."""

        def make(user: User) -> bool:
            try:
                return make_big_v(user=user, by=request.user)  # type: ignore[arg-type]
            except NotActiveError:
                return False

        self.each(
            request,
            self.chosen(request, queryset),
            self.unless_barred(request, make),
            logged=MADE,
            done=lambda n: ngettext("%(count)s user is big-V now.", "%(count)s users are big-V now.", n),
            left=lambda n: ngettext(
                "%(count)s user was left as they are: big-V already, deactivated, or one that only superusers change.",
                "%(count)s users were left as they are: big-V already, deactivated, or ones that only superusers "
                "change.",
                n,
            ),
        )

    @admin.action(description=_("Demote from big-V …"), permissions=["change"])
    def demote(self, request: HttpRequest, queryset: QuerySet[User]) -> TemplateResponse | None:
        """Asks first, and names how many inboxes are filled."""
        users = self.chosen(request, queryset)

        def left(count: int) -> str:
            return ngettext(
                "%(count)s user was left as they are: no big-V, being demoted already, or one that only superusers "
                "change.",
                "%(count)s users were left as they are: no big-V, being demoted already, or one that only superusers "
                "change.",
                count,
            )

        if "confirmed" in request.POST:
            self.each(
                request,
                users,
                self.unless_barred(request, lambda user: demote(user=user, by=request.user)),  # type: ignore[arg-type]
                logged=DEMOTION,
                done=lambda n: ngettext(
                    "%(count)s user is being demoted: the inboxes of their followers are being filled.",
                    "%(count)s users are being demoted: the inboxes of their followers are being filled.",
                    n,
                ),
                left=left,
            )
            return None
        may = self.unless_barred(request, lambda user: user.is_big_v and not self.progress(user))
        users = self.able(request, users, may, left=left)
        if not users:
            return None
        return self.confirm(request, users, "demote", **self.about_demotion(users), name=self.name_and_fans)


def _fans(count: int) -> str:
    return counted(lambda n: ngettext("%(count)s follower", "%(count)s followers", n), count)


@admin.register(BigVChange)
class BigVChangeAdmin(LogAdmin):
    """The history of big-Vs: when, which change, automatically or by which admin."""

    list_display = ("at", "of", "kind", "origin", handle_column("by", _("by")))
    list_display_links = None
    list_filter = ("kind", "origin")
    list_select_related = ("user", "by")
    sortable_by = ()
    search_fields = ("=user__username",)
    search_help_text = _("The whole name of a user.")
    fields = readonly_fields = ("user", "at", "kind", "origin", "by")

    @admin.display(description=_("user"))
    def of(self, change: BigVChange) -> SafeString:
        """The user of the change, with a link and the badge."""
        address = reverse("admin:accounts_user_change", args=[change.user_id])
        return format_html('<a href="{}">@{}</a>{}', address, change.user.username, badge_of(change.user))
