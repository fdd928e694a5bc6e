from django.urls import include, path

from moderation import api, views

api_patterns = [
    path("items/<id:item_id>/report", api.ReportView.as_view()),
    path("users/<str:username>/report", api.AccountReportView.as_view()),
    path("live/sessions/<id:session_id>/report", api.SessionReportView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("items/<number:item_id>/report", views.report, name="report"),
    path("@<str:username>/report", views.report_account, name="report-account"),
    path("live/<number:session_id>/report", views.report_session, name="report-session"),
]
