from django.urls import include, path, re_path

from relations import api, csv_views, list_api, list_views, tag_api, tag_views, views

VERB = "|".join(views.VERBS)

api_patterns = [
    path("me/follow-requests", api.FollowRequestsView.as_view()),
    path("me/follow-requests/<str:username>/accept", api.AcceptView.as_view()),
    path("me/follow-requests/<str:username>/reject", api.RejectView.as_view()),
    path("me/blocks", api.BlocksView.as_view()),
    path("me/mutes", api.MutesView.as_view()),
    path("users/<str:username>/follower", api.FollowerView.as_view()),
    path("users/<str:username>/followers", api.FollowersView.as_view()),
    path("users/<str:username>/following", api.FollowingView.as_view()),
    path("users/<str:username>/follow", api.FollowView.as_view()),
    path("users/<str:username>/bell", api.BellView.as_view()),
    path("users/<str:username>/block", api.BlockView.as_view()),
    path("users/<str:username>/mute", api.MuteView.as_view()),
    path("me/tags", tag_api.FollowedTagsView.as_view()),
    path("me/lists", list_api.ListsView.as_view()),
    path("me/lists/<id:list_id>", list_api.ListView.as_view()),
    path("me/lists/<id:list_id>/members", list_api.MembersView.as_view()),
    path("me/lists/<id:list_id>/members/<str:username>", list_api.MemberView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("follow-requests", views.requests, name="follow-requests"),
    path("settings/mutes", views.mutes, name="settings-mutes"),
    path("settings/import-export", csv_views.lists, name="settings-import-export"),
    path("settings/export/<str:kind>.csv", csv_views.export, name="settings-export"),
    path("settings/import/<int:import_id>/not-done.csv", csv_views.refused_rows, name="settings-import-refused"),
    path("settings/blocks", views.blocks, name="settings-blocks"),
    path("settings/bells", views.bells, name="settings-bells"),
    path("@<str:username>/card", views.hover_card, name="hover-card"),
    path("@<str:username>/mute-for", views.mute_with_options, name="mute-for"),
    path("@<str:username>/note", views.note, name="note"),
    path("@<str:username>/followers", views.followers, name="followers"),
    path("@<str:username>/following", views.following, name="following"),
    path("@<str:username>/lists", list_views.lists_of_person, name="person-lists"),
    path("lists", list_views.own_lists, name="lists"),
    path("lists/<number:list_id>/edit", list_views.edit_list, name="list-edit"),
    path("lists/<number:list_id>/delete", list_views.delete_list, name="list-delete"),
    path("lists/<number:list_id>/add", list_views.add_member, name="list-add"),
    path("lists/<number:list_id>/remove", list_views.remove_member, name="list-remove"),
    re_path(r"^tags/(?P<name>[^/]+)/(?P<verb>follow|unfollow)$", tag_views.relate_tag, name="relate-tag"),
    re_path(f"^@(?P<username>[^/]+)/(?P<verb>{VERB})$", views.relate, name="relate"),
]
