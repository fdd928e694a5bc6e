"""Mastodon's other addresses, and OAuth's. They come after the addresses of all other packages."""

from django.urls import include, path, re_path

from clientapi import conversation_api, filter_api, instance_api, misc_api, search_api, tag_api
from clientapi.accounts import api as account_api
from clientapi.accounts import list_api, report_api
from clientapi.errors import MissingView
from clientapi.notifications import api as notification_api
from clientapi.notifications import push_api
from clientapi.oauth import api as oauth_api
from clientapi.oauth import views
from clientapi.statuses import api as status_api
from clientapi.statuses import media_api, poll_api, scheduled_api, timeline_api

api_patterns = [
    path("apps", oauth_api.AppsView.as_view()),
    path("apps/verify_credentials", oauth_api.OwnAppView.as_view()),
    path("instance", instance_api.InstanceView.as_view()),
    path("instance/", instance_api.InstanceView.as_view()),
    path("instance/rules", misc_api.RulesView.as_view()),
    path("instance/extended_description", misc_api.DescriptionView.as_view()),
    path("instance/peers", misc_api.EmptyView.as_view()),
    path("instance/activity", misc_api.EmptyView.as_view()),
    path("instance/domain_blocks", misc_api.EmptyView.as_view()),
    path("instance/translation_languages", misc_api.EmptyObjectView.as_view()),
    path("statuses", status_api.StatusesView.as_view()),
    path("push/subscription", push_api.SubscriptionView.as_view()),
    path("bookmarks", timeline_api.BookmarksView.as_view()),
    path("favourites", timeline_api.FavouritesView.as_view()),
    path("media", media_api.MediaView.as_view()),
    path("media/<str:media_id>", media_api.MediumView.as_view()),
    path("accounts", account_api.AccountsView.as_view()),
    path("blocks", account_api.BlocksView.as_view()),
    path("mutes", account_api.MutesView.as_view()),
    path("follow_requests", account_api.RequestsView.as_view()),
    path("follow_requests/<str:account_id>/authorize", account_api.AcceptView.as_view()),
    path("follow_requests/<str:account_id>/reject", account_api.RejectView.as_view()),
    path("notifications", notification_api.NotificationsView.as_view()),
    path("markers", notification_api.MarkersView.as_view()),
    path("polls/<str:poll_id>", poll_api.PollView.as_view()),
    path("polls/<str:poll_id>/votes", poll_api.VotesView.as_view()),
    path("lists", list_api.ListsView.as_view()),
    path("lists/<str:list_id>", list_api.ListView.as_view()),
    path("lists/<str:list_id>/accounts", list_api.MembersView.as_view()),
    path("filters", filter_api.FirstFiltersView.as_view()),
    path("filters/<str:filter_id>", filter_api.FirstFilterView.as_view()),
    path("preferences", misc_api.PreferencesView.as_view()),
    path("reports", report_api.ReportsView.as_view()),
    path("reports/", report_api.ReportsView.as_view()),
    path("trends", misc_api.TrendingTagsView.as_view()),
    path("trends/tags", misc_api.TrendingTagsView.as_view()),
    path("trends/statuses", misc_api.TrendingStatusesView.as_view()),
    path("trends/links", misc_api.EmptyView.as_view()),
    path("suggestions", misc_api.FirstSuggestionsView.as_view()),
    path("tags/<str:tag>", tag_api.TagView.as_view()),
    path("tags/<str:tag>/follow", tag_api.follow),
    path("tags/<str:tag>/unfollow", tag_api.UnfollowTagView.as_view()),
    path("announcements", misc_api.AnnouncementsView.as_view()),
    path("announcements/<str:announcement_id>/dismiss", misc_api.DismissedView.as_view()),
    path("custom_emojis", misc_api.EmptyView.as_view()),
    path("directory", misc_api.EmptyView.as_view()),
    path("conversations", conversation_api.ConversationsView.as_view()),
    path("conversations/", conversation_api.ConversationsView.as_view()),
    path("conversations/<str:conversation_id>", conversation_api.ConversationView.as_view()),
    path("conversations/<str:conversation_id>/read", conversation_api.ConversationReadView.as_view()),
    path("domain_blocks", misc_api.OwnEmptyView.as_view()),
    path("endorsements", misc_api.OwnEmptyView.as_view()),
    path("featured_tags", misc_api.OwnEmptyView.as_view()),
    path("featured_tags/suggestions", misc_api.OwnEmptyView.as_view()),
    path("followed_tags", tag_api.FollowedTagsView.as_view()),
    path("scheduled_statuses", scheduled_api.ScheduledStatusesView.as_view()),
    path("scheduled_statuses/<str:scheduled_id>", scheduled_api.ScheduledStatusView.as_view()),
]
second_patterns = [
    path("instance", instance_api.SecondInstanceView.as_view()),
    path("instance/", instance_api.SecondInstanceView.as_view()),
    path("media", media_api.MediaView.as_view()),
    path("notifications", notification_api.GroupsView.as_view()),
    path("notifications/unread_count", notification_api.UnreadGroupsView.as_view()),
    path("notifications/<str:group_key>", notification_api.GroupView.as_view()),
    path("notifications/<str:group_key>/accounts", notification_api.GroupAccountsView.as_view()),
    path("notifications/<str:group_key>/dismiss", notification_api.DismissGroupView.as_view()),
    path("search", search_api.SearchView.as_view()),
    path("suggestions", misc_api.SuggestionsView.as_view()),
    path("filters", filter_api.FiltersView.as_view()),
    path("filters/<str:filter_id>", filter_api.FilterView.as_view()),
    path("filters/<str:filter_id>/keywords", filter_api.KeywordsView.as_view()),
    path("filters/<str:filter_id>/statuses", filter_api.FilteredStatusesView.as_view()),
    path("filters/keywords/<str:filter_id>", filter_api.KeywordView.as_view()),
]
MISSING = (
    "accounts|admin|announcements|apps|blocks|bookmarks|conversations|custom_emojis|directory|domain_blocks|emails|endorsements|"
    "favourites|featured_tags|filters|follow_requests|followed_tags|instance|lists|markers|media|mutes|notifications|oembed|"
    "polls|preferences|profile|push|reports|scheduled_statuses|statuses|streaming|suggestions|timelines|trends"
)
"""First words of Mastodon's addresses. Errors below them have Mastodon's shape."""

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("api/v1/", include("clientapi.streaming.urls")),
    path("api/v2/", include(second_patterns)),
    re_path(rf"^api/(?:v1/(?:{MISSING})(?:/.*)?|v2/.*)\Z", MissingView.as_view()),
    path("oauth/authorize", views.authorize, name="oauth-authorize"),
    path("oauth/authorize/", views.authorize, name="oauth-authorize-slash"),
    path("oauth/token", oauth_api.TokenView.as_view(), name="oauth-token"),
    path("oauth/revoke", oauth_api.RevokeView.as_view(), name="oauth-revoke"),
    path(".well-known/oauth-authorization-server", oauth_api.metadata, name="oauth-metadata"),
    path(".well-known/nodeinfo", instance_api.nodeinfo_links, name="nodeinfo-links"),
    path("nodeinfo/2.0", instance_api.nodeinfo, name="nodeinfo"),
]
