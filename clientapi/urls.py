"""Mastodon's most used addresses."""

from django.urls import include, path

from clientapi import misc_api, search_api
from clientapi.accounts import api as account_api
from clientapi.notifications import api as notification_api
from clientapi.statuses import api as status_api
from clientapi.statuses import timeline_api

timeline_patterns = [
    path("home", timeline_api.HomeView.as_view()),
    path("public", timeline_api.PublicView.as_view()),
    path("tag/<str:tag>", timeline_api.TagView.as_view()),
    path("list/<str:list_id>", timeline_api.ListView.as_view()),
]
status_patterns = [
    path("<str:status_id>", status_api.StatusView.as_view()),
    path("<str:status_id>/context", status_api.ContextView.as_view()),
    path("<str:status_id>/source", status_api.SourceView.as_view()),
    path("<str:status_id>/history", status_api.HistoryView.as_view()),
    path("<str:status_id>/favourited_by", status_api.FavouritedByView.as_view()),
    path("<str:status_id>/reblogged_by", status_api.RebloggedByView.as_view()),
    path("<str:status_id>/quotes", status_api.QuotesView.as_view()),
    path("<str:status_id>/quotes/<str:quote_id>/revoke", status_api.RevokeView.as_view()),
    path("<str:status_id>/interaction_policy", status_api.PolicyView.as_view()),
    path("<str:status_id>/favourite", status_api.FavouriteView.as_view()),
    path("<str:status_id>/unfavourite", status_api.UnfavouriteView.as_view()),
    path("<str:status_id>/reblog", status_api.ReblogView.as_view()),
    path("<str:status_id>/unreblog", status_api.UnreblogView.as_view()),
    path("<str:status_id>/bookmark", status_api.BookmarkView.as_view()),
    path("<str:status_id>/unbookmark", status_api.UnbookmarkView.as_view()),
    path("<str:status_id>/pin", status_api.PinView.as_view()),
    path("<str:status_id>/unpin", status_api.UnpinView.as_view()),
    path("<str:status_id>/mute", status_api.MuteView.as_view()),
    path("<str:status_id>/unmute", status_api.UnmuteView.as_view()),
]
account_patterns = [
    path("verify_credentials", account_api.OwnAccountView.as_view()),
    path("update_credentials", account_api.ProfileView.as_view()),
    path("relationships", account_api.RelationshipsView.as_view()),
    path("lookup", account_api.LookupView.as_view()),
    path("search", search_api.AccountSearchView.as_view()),
    path("familiar_followers", misc_api.OwnEmptyView.as_view()),
    path("<str:account_id>", account_api.AccountView.as_view()),
    path("<str:account_id>/statuses", account_api.StatusesView.as_view()),
    path("<str:account_id>/followers", account_api.FollowersView.as_view()),
    path("<str:account_id>/following", account_api.FollowingView.as_view()),
    path("<str:account_id>/lists", account_api.ListsOfAccountView.as_view()),
    path("<str:account_id>/featured_tags", misc_api.EmptyOfAccountView.as_view()),
    path("<str:account_id>/endorsements", misc_api.EmptyOfAccountView.as_view()),
    path("<str:account_id>/identity_proofs", misc_api.EmptyOfAccountView.as_view()),
    path("<str:account_id>/follow", account_api.FollowView.as_view()),
    path("<str:account_id>/unfollow", account_api.UnfollowView.as_view()),
    path("<str:account_id>/remove_from_followers", account_api.RemoveFollowerView.as_view()),
    path("<str:account_id>/block", account_api.BlockView.as_view()),
    path("<str:account_id>/unblock", account_api.UnblockView.as_view()),
    path("<str:account_id>/mute", account_api.MuteView.as_view()),
    path("<str:account_id>/unmute", account_api.UnmuteView.as_view()),
]
notification_patterns = [
    path("unread_count", notification_api.UnreadView.as_view()),
    path("clear", notification_api.ClearView.as_view()),
    path("<str:notification_id>", notification_api.NotificationView.as_view()),
    path("<str:notification_id>/dismiss", notification_api.DismissView.as_view()),
]

urlpatterns = [
    path("api/v1/timelines/", include(timeline_patterns)),
    path("api/v1/statuses/", include(status_patterns)),
    path("api/v1/accounts/", include(account_patterns)),
    path("api/v1/notifications/", include(notification_patterns)),
]
