from django.urls import include, path

from items import api, views
from items.conversations import api as conversation_api
from items.conversations import views as conversation_views
from items.filters import api as filter_api
from items.filters import views as filter_views
from items.likes import views as people_views
from items.polls import views as poll_views
from items.profiles import views as pin_views
from items.scheduled import api as scheduled_api
from items.scheduled import views as scheduled_views
from items.search import views as search_views

api_patterns = [
    path("users/<str:username>", api.ProfileView.as_view()),
    path("users/<str:username>/items", api.ProfileItemsView.as_view()),
    path("search", api.SearchView.as_view()),
    path("tags/<str:tag>/items", api.TagItemsView.as_view()),
    path("me/filters", filter_api.FiltersView.as_view()),
    path("me/filters/<str:filter_id>", filter_api.FilterView.as_view()),
    path("me/conversations", conversation_api.ConversationsView.as_view()),
    path("me/conversations/requests", conversation_api.RequestsView.as_view()),
    path("me/conversations/<str:conversation_id>", conversation_api.ConversationView.as_view()),
    path("me/conversations/<str:conversation_id>/accept", conversation_api.ConversationAcceptView.as_view()),
    path("me/conversations/<str:conversation_id>/read", conversation_api.ConversationReadView.as_view()),
    path("me/scheduled", scheduled_api.ScheduledPostsView.as_view()),
    path("me/scheduled/<str:scheduled_id>", scheduled_api.ScheduledPostView.as_view()),
    path("items", api.ItemsView.as_view()),
    path("items/<str:item_id>", api.ItemView.as_view()),
    path("items/<str:item_id>/like", api.LikeView.as_view()),
    path("items/<str:item_id>/vote", api.VoteView.as_view()),
    path("items/<str:item_id>/pin", api.PinView.as_view()),
    path("items/<str:item_id>/mute", api.MuteView.as_view()),
    path("items/<str:item_id>/bookmark", api.BookmarkView.as_view()),
    path("me/bookmarks", api.BookmarksView.as_view()),
    path("me/likes", api.LikesView.as_view()),
    path("items/<str:item_id>/repost", api.RepostView.as_view()),
    path("items/<str:item_id>/replies", api.RepliesView.as_view()),
    path("items/<str:item_id>/likes", api.LikersView.as_view()),
    path("items/<str:item_id>/reposts", api.RepostersView.as_view()),
    path("items/<str:item_id>/quotes", api.QuotesView.as_view()),
    path("items/<str:item_id>/quotes/<str:quote_id>", api.QuoteView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("search", search_views.search, name="search"),
    path("complete", search_views.complete, name="complete"),
    path("emoji", search_views.emoji, name="emoji"),
    path("tags/<str:name>", search_views.tag, name="tag"),
    path("settings/filters", filter_views.own_filters, name="settings-filters"),
    path("settings/filters/<int:filter_id>", filter_views.edit_filter, name="settings-filter"),
    path("settings/filters/<int:filter_id>/delete", filter_views.delete_filter, name="settings-filter-delete"),
    path("scheduled", scheduled_views.scheduled, name="scheduled"),
    path("scheduled/<int:post_id>", scheduled_views.edit, name="scheduled-edit"),
    path("scheduled/<int:post_id>/delete", scheduled_views.delete, name="scheduled-delete"),
    path("items/new", views.publish, name="publish"),
    path("items/new/media-form", views.media_form, name="media-form"),
    path("items/new/poll-form", poll_views.poll_form, name="poll-form"),
    path("items/new/media", views.draft_media, name="draft-media"),
    path("items/<int:item_id>", views.show_item, name="item"),
    path("items/<int:item_id>/edit", views.edit, name="edit"),
    path("items/<int:item_id>/menu", views.menu, name="menu"),
    path("items/<int:item_id>/quotes", views.quotes, name="quotes"),
    path("items/<int:item_id>/revoke-quote", views.revoke_quote, name="revoke_quote"),
    path("items/<int:item_id>/edits", views.edits, name="edits"),
    path("items/<int:item_id>/likes", people_views.likers, name="likers"),
    path("items/<int:item_id>/reposts", people_views.reposters, name="reposters"),
    path("items/<int:item_id>/delete", views.delete, name="delete"),
    path("items/<int:item_id>/like", views.like, name="like"),
    path("items/<int:item_id>/unlike", views.unlike, name="unlike"),
    path("items/<int:item_id>/vote", poll_views.vote, name="vote"),
    path("items/<int:item_id>/pin", pin_views.pin, name="pin"),
    path("items/<int:item_id>/unpin", pin_views.unpin, name="unpin"),
    path("items/<int:item_id>/mute", views.mute, name="mute-thread"),
    path("items/<int:item_id>/unmute", views.unmute, name="unmute-thread"),
    path("items/<int:item_id>/bookmark", views.bookmark, name="bookmark"),
    path("items/<int:item_id>/remove-bookmark", views.remove_bookmark, name="remove-bookmark"),
    path("conversations", conversation_views.conversations, name="conversations"),
    path("conversations/requests", conversation_views.requests, name="conversation-requests"),
    path("conversations/<int:conversation_id>", conversation_views.conversation, name="conversation"),
    path("conversations/<int:conversation_id>/accept", conversation_views.accept_request, name="conversation-accept"),
    path("conversations/<int:conversation_id>/remove", conversation_views.remove, name="conversation-remove"),
    path("bookmarks", views.bookmarks, name="bookmarks"),
    path("likes", views.likes, name="likes"),
    path("items/<int:item_id>/repost", views.repost, name="repost"),
    path("items/<int:item_id>/undo-repost", views.undo_repost, name="undo_repost"),
    path("@<str:username>", views.profile, name="profile"),
    path("@<str:username>/replies", views.profile_replies, name="profile_replies"),
    path("@<str:username>/media", views.profile_media, name="profile_media"),
]
