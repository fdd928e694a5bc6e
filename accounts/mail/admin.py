"""Letters in the admin, without texts."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop, ngettext

from accounts.mail.actions import retry
from accounts.mail.models import Letter, LetterState
from web.admin import ActingAdmin, LogAdmin


@admin.register(Letter)
class LetterAdmin(LogAdmin, ActingAdmin):
    """Recent letters, newest first."""

    list_display = ("id", "kind", "address", "state", "attempts", "error", "created_at", "next_at", "sent_at")
    list_filter = ("state",)
    fields = (
        "id",
        "kind",
        "address",
        "user_id",
        "language",
        "state",
        "attempts",
        "error",
        "created_at",
        "next_at",
        "expires_at",
        "sent_at",
    )
    actions = ("retry",)

    def waiting(self, request: HttpRequest) -> QuerySet[Letter]:
        """Letters that were given up, and can be tried again."""
        return Letter.objects.filter(state=LetterState.FAILED, expires_at__gt=timezone.now())

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Whether the request may retry letters."""
        return request.user.has_perm("mail.change_letter")

    @admin.action(description=_("Try again"), permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Letter]) -> None:
        """Retry the chosen failed letters."""
        self.apply_to_each(
            request,
            self.chosen(request, queryset),
            lambda letter: retry(letter_id=letter.pk),
            logged=gettext_noop("Tried again."),
            done=lambda n: ngettext("Trying %(count)s letter again.", "Trying %(count)s letters again.", n),
            left=lambda n: ngettext(
                "%(count)s letter not retried: it wasn't given up, or it has expired.",
                "%(count)s letters not retried: they weren't given up, or they have expired.",
                n,
            ),
        )
