from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import JSONObject
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from accounts.levels_admin import DemotionProgress
from accounts.models import User
from moderation.user_admin import ModeratedUserAdmin
from timeline.explain import explain_home
from timeline.models import Backfill
from web.rest import parse_id

EXPLAINING = ("relations.view_follow", "relations.view_block", "relations.view_mute", "items.view_item")
"""Staff need these permissions, because the explanation reveals relations and shows any item."""


@admin.register(User)
class WatchedUserAdmin(ModeratedUserAdmin):
    """The admin of users, with the progress of a big-V's demotion."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Users, annotated with their running demotion."""
        running = Backfill.objects.filter(sender=OuterRef("pk"), finished_at=None, cancelled_at=None)
        progress = running.values(progress=JSONObject(done="done", followers="followers"))
        users: QuerySet[User] = super().get_queryset(request)
        return users.annotate(demotion=Subquery(progress))

    def progress(self, user: Any) -> DemotionProgress | None:
        """The progress of a demotion."""
        return DemotionProgress(**user.demotion) if user.demotion else None

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """The form of a user, with a link to the explained home."""
        context |= {"may_explain": request.user.has_perms(EXPLAINING)}
        return super().render_change_form(request, context, *args, **kwargs)

    def get_urls(self) -> list[URLPattern]:
        """The addresses, with that of the explained home."""
        view = self.admin_site.admin_view(self.home_view)
        return [path("<int:user_id>/home/", view, name="accounts_user_home"), *super().get_urls()]

    def home_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Explain the home, and the item `?item=` in it. Read-only."""
        user = self.get_object(request, str(user_id))
        if not (self.has_view_permission(request, user) and request.user.has_perms(EXPLAINING)):
            raise PermissionDenied
        if user is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, str(user_id))  # type: ignore[attr-defined, no-any-return]
        asked = request.GET.get("item", "").strip()
        item_id = parse_id(asked)
        context = self.admin_site.each_context(request) | {
            "title": _("The home timeline of @%(name)s") % {"name": user.username},
            "opts": self.opts,
            "original": user,
            "asked": asked[:40],
            "is_wrong": asked and item_id is None,
            "parts": explain_home(user, item_id=item_id),
        }
        return TemplateResponse(request, "admin/accounts/user/home.html", context)
