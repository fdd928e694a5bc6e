"""The addresses of items, profiles and search."""

from django.urls import include, path

from items import api, filter_api, filter_views, people_views, pin_views, search_views, views

api_patterns = [
    path("users/<str:username>", api.ProfileView.as_view()),
    path("users/<str:username>/items", api.ProfileItemsView.as_view()),
    path("search", api.SearchView.as_view()),
    path("tags/<str:tag>/items", api.TagItemsView.as_view()),
    path("me/filters", filter_api.FiltersView.as_view()),
    path("me/filters/<str:filter_id>", filter_api.FilterView.as_view()),
    path("items", api.ItemsView.as_view()),
    path("items/<str:item_id>", api.ItemView.as_view()),
    path("items/<str:item_id>/like", api.LikeView.as_view()),
    path("items/<str:item_id>/pin", api.PinView.as_view()),
    path("items/<str:item_id>/bookmark", api.BookmarkView.as_view()),
    path("me/bookmarks", api.BookmarksView.as_view()),
    path("me/likes", api.LikesView.as_view()),
    path("items/<str:item_id>/repost", api.RepostView.as_view()),
    path("items/<str:item_id>/replies", api.RepliesView.as_view()),
    path("items/<str:item_id>/likes", api.LikersView.as_view()),
    path("items/<str:item_id>/reposts", api.RepostersView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("search", search_views.search, name="search"),
    path("complete", search_views.complete, name="complete"),
    path("tags/<str:name>", search_views.tag, name="tag"),
    path("settings/filters", filter_views.own_filters, name="settings-filters"),
    path("settings/filters/<int:filter_id>", filter_views.edit_filter, name="settings-filter"),
    path("settings/filters/<int:filter_id>/delete", filter_views.delete_filter, name="settings-filter-delete"),
    path("items/new", views.publish, name="publish"),
    path("items/new/media-form", views.media_form, name="media-form"),
    path("items/new/media", views.draft_media, name="draft-media"),
    path("items/<int:item_id>", views.show_item, name="item"),
    path("items/<int:item_id>/edit", views.edit, name="edit"),
    path("items/<int:item_id>/menu", views.menu, name="menu"),
    path("items/<int:item_id>/edits", views.edits, name="edits"),
    path("items/<int:item_id>/likes", people_views.likers, name="likers"),
    path("items/<int:item_id>/reposts", people_views.reposters, name="reposters"),
    path("items/<int:item_id>/delete", views.delete, name="delete"),
    path("items/<int:item_id>/like", views.like, name="like"),
    path("items/<int:item_id>/unlike", views.unlike, name="unlike"),
    path("items/<int:item_id>/pin", pin_views.pin, name="pin"),
    path("items/<int:item_id>/unpin", pin_views.unpin, name="unpin"),
    path("items/<int:item_id>/bookmark", views.bookmark, name="bookmark"),
    path("items/<int:item_id>/remove-bookmark", views.remove_bookmark, name="remove-bookmark"),
    path("bookmarks", views.bookmarks, name="bookmarks"),
    path("likes", views.likes, name="likes"),
    path("items/<int:item_id>/repost", views.repost, name="repost"),
    path("items/<int:item_id>/undo-repost", views.undo_repost, name="undo_repost"),
    path("@<str:username>", views.profile, name="profile"),
    path("@<str:username>/replies", views.profile_replies, name="profile_replies"),
    path("@<str:username>/media", views.profile_media, name="profile_media"),
]
