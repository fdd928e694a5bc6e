from django.urls import include, path

from moderation import api, views

api_patterns = [
    path("items/<str:item_id>/report", api.ReportView.as_view()),
    path("users/<str:username>/report", api.AccountReportView.as_view()),
    path("live/sessions/<str:session_id>/report", api.SessionReportView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("items/<int:item_id>/report", views.report, name="report"),
    path("@<str:username>/report", views.report_account, name="report-account"),
    path("live/<int:session_id>/report", views.report_session, name="report-session"),
]
