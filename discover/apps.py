from django.apps import AppConfig
from django.conf import settings


class DiscoverConfig(AppConfig):
    name = "discover"

    def ready(self) -> None:
        from discover import opensearch, receivers  # noqa: F401 - connects the receivers

        if settings.OPENSEARCH_URL:
            opensearch.server()  # a wrong address is told at the start, not by the first refresh
