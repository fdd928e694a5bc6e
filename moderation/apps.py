from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ModerationConfig(AppConfig):
    name = "moderation"
    verbose_name = _("Moderation")

    def ready(self) -> None:
        from moderation import receivers  # noqa: F401 - connects the receivers
        from moderation.waiting import waiting_for
        from notifications.desk import desk
        from web.admin import DecidingMixin

        desk.waiting = waiting_for
        DecidingMixin.decide_permission, DecidingMixin.decide_page = (
            "moderation.decide_case",
            "admin:moderation_case_act",
        )
