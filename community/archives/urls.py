from django.urls import path

from community.archives import views

urlpatterns = [
    path("settings/import-archive", views.archive, name="settings-archive"),
    path("settings/import-archive/<int:import_id>/stop", views.stop, name="settings-archive-stop"),
]
