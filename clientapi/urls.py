"""Mastodon's most used addresses."""

from django.urls import include, path

from clientapi.rest import accounts, misc, notification_requests, notifications, search, statuses, timelines

timeline_patterns = [
    path("home", timelines.HomeView.as_view()),
    path("public", timelines.PublicView.as_view()),
    path("tag/<str:tag>", timelines.TagView.as_view()),
    path("list/<id:list_id>", timelines.ListView.as_view()),
]
status_patterns = [
    path("<id:status_id>", statuses.StatusView.as_view()),
    path("<id:status_id>/context", statuses.ContextView.as_view()),
    path("<id:status_id>/source", statuses.SourceView.as_view()),
    path("<id:status_id>/history", statuses.HistoryView.as_view()),
    path("<id:status_id>/favourited_by", statuses.FavouritedByView.as_view()),
    path("<id:status_id>/reblogged_by", statuses.RebloggedByView.as_view()),
    path("<id:status_id>/quotes", statuses.QuotesView.as_view()),
    path("<id:status_id>/quotes/<id:quote_id>/revoke", statuses.RevokeView.as_view()),
    path("<id:status_id>/interaction_policy", statuses.PolicyView.as_view()),
    path("<id:status_id>/favourite", statuses.FavouriteView.as_view()),
    path("<id:status_id>/unfavourite", statuses.UnfavouriteView.as_view()),
    path("<id:status_id>/reblog", statuses.ReblogView.as_view()),
    path("<id:status_id>/unreblog", statuses.UnreblogView.as_view()),
    path("<id:status_id>/bookmark", statuses.BookmarkView.as_view()),
    path("<id:status_id>/unbookmark", statuses.UnbookmarkView.as_view()),
    path("<id:status_id>/pin", statuses.PinView.as_view()),
    path("<id:status_id>/unpin", statuses.UnpinView.as_view()),
    path("<id:status_id>/mute", statuses.MuteView.as_view()),
    path("<id:status_id>/unmute", statuses.UnmuteView.as_view()),
]
account_patterns = [
    path("verify_credentials", accounts.OwnAccountView.as_view()),
    path("update_credentials", accounts.ProfileView.as_view()),
    path("relationships", accounts.RelationshipsView.as_view()),
    path("lookup", accounts.LookupView.as_view()),
    path("search", search.AccountSearchView.as_view()),
    path("familiar_followers", misc.OwnEmptyView.as_view(scopes="follows")),
    path("<id:account_id>", accounts.AccountView.as_view()),
    path("<id:account_id>/statuses", accounts.StatusesView.as_view()),
    path("<id:account_id>/followers", accounts.FollowersView.as_view()),
    path("<id:account_id>/following", accounts.FollowingView.as_view()),
    path("<id:account_id>/lists", accounts.ListsOfAccountView.as_view()),
    path("<id:account_id>/featured_tags", misc.EmptyOfAccountView.as_view()),
    path("<id:account_id>/endorsements", misc.EmptyOfAccountView.as_view()),
    path("<id:account_id>/identity_proofs", misc.EmptyOfAccountView.as_view()),
    path("<id:account_id>/follow", accounts.FollowView.as_view()),
    path("<id:account_id>/note", accounts.NoteView.as_view()),
    path("<id:account_id>/unfollow", accounts.UnfollowView.as_view()),
    path("<id:account_id>/remove_from_followers", accounts.RemoveFollowerView.as_view()),
    path("<id:account_id>/block", accounts.BlockView.as_view()),
    path("<id:account_id>/unblock", accounts.UnblockView.as_view()),
    path("<id:account_id>/mute", accounts.MuteView.as_view()),
    path("<id:account_id>/unmute", accounts.UnmuteView.as_view()),
]
notification_patterns = [
    path("unread_count", notifications.UnreadView.as_view()),
    path("clear", notifications.ClearView.as_view()),
    path("policy", notification_requests.FirstPolicyView.as_view()),
    path("requests", notification_requests.RequestsView.as_view()),
    path("requests/accept", notification_requests.AcceptView.as_view()),
    path("requests/dismiss", notification_requests.DismissView.as_view()),
    path("requests/merged", notification_requests.MergedView.as_view()),
    path("requests/<id:request_id>", notification_requests.RequestView.as_view()),
    path("requests/<id:request_id>/accept", notification_requests.AcceptView.as_view()),
    path("requests/<id:request_id>/dismiss", notification_requests.DismissView.as_view()),
    path("<id:notification_id>", notifications.NotificationView.as_view()),
    path("<id:notification_id>/dismiss", notifications.DismissView.as_view()),
]

urlpatterns = [
    path("api/v1/timelines/", include(timeline_patterns)),
    path("api/v1/statuses/", include(status_patterns)),
    path("api/v1/accounts/", include(account_patterns)),
    path("api/v1/notifications/", include(notification_patterns)),
]
