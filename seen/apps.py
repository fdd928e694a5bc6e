from django.apps import AppConfig


class SeenConfig(AppConfig):
    name = "seen"
