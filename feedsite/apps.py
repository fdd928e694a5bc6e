from django.apps import AppConfig


class FeedsiteConfig(AppConfig):
    name = "feedsite"
