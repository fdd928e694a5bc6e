from django.urls import include, path

from moderation import api, decision_views, views

api_patterns = [
    path("items/<id:item_id>/report", api.ReportView.as_view()),
    path("users/<str:username>/report", api.AccountReportView.as_view()),
    path("live/sessions/<id:session_id>/report", api.SessionReportView.as_view()),
    path("me/decisions", api.DecisionsView.as_view()),
    path("me/decisions/<id:decision_id>/appeal", api.AppealView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("items/<number:item_id>/report", views.report, name="report"),
    path("@<str:username>/report", views.report_account, name="report-account"),
    path("live/<number:session_id>/report", views.report_session, name="report-session"),
    path("about/moderation", views.figures, name="moderation-figures"),
    path("decisions", decision_views.decisions, name="decisions"),
    path("decisions/<number:decision_id>", decision_views.decision, name="decision"),
    path("suspended/<str:right>", decision_views.suspended, name="suspended"),
    path("suspended/<str:right>/data", decision_views.suspended_data, name="suspended-data"),
]
