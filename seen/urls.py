from django.urls import include, path

from seen import api

api_patterns = [
    path("seen/plays", api.PlaysView.as_view()),
    path("seen/plays/batch", api.PlaysBatchView.as_view()),
    path("seen/issued", api.IssuedView.as_view()),
    path("seen/filter", api.PlayedFilterView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
]
