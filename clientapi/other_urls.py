"""Mastodon's other addresses, and OAuth's. They come after the addresses of all other packages."""

from django.urls import URLPattern, include, path, re_path

from clientapi import urls, views
from clientapi.errors import MissingView
from clientapi.rest import (
    accounts,
    conversations,
    filters,
    instance,
    lists,
    media,
    misc,
    notification_requests,
    notifications,
    oauth,
    polls,
    push,
    reports,
    scheduled,
    search,
    statuses,
    tags,
    timelines,
)
from media.models import Use

api_patterns = [
    path("apps", oauth.AppsView.as_view()),
    path("apps/verify_credentials", oauth.OwnAppView.as_view()),
    path("instance", instance.InstanceView.as_view()),
    path("instance/rules", misc.RulesView.as_view()),
    path("instance/extended_description", misc.DescriptionView.as_view()),
    path("instance/privacy_policy", misc.PrivacyView.as_view()),
    path("instance/terms_of_service", misc.TermsView.as_view()),
    path("instance/peers", misc.EmptyView.as_view()),
    path("instance/activity", misc.EmptyView.as_view()),
    path("instance/domain_blocks", misc.EmptyView.as_view()),
    path("instance/translation_languages", misc.EmptyObjectView.as_view()),
    path("statuses", statuses.StatusesView.as_view()),
    path("push/subscription", push.SubscriptionView.as_view()),
    path("bookmarks", timelines.BookmarksView.as_view()),
    path("favourites", timelines.FavouritesView.as_view()),
    path("media", media.WaitingMediaView.as_view()),
    path("media/<id:media_id>", media.MediumView.as_view()),
    path("accounts", accounts.AccountsView.as_view()),
    path("profile/avatar", accounts.FaceView.as_view()),
    path("profile/header", accounts.FaceView.as_view(use=Use.BANNER)),
    path("blocks", accounts.BlocksView.as_view()),
    path("mutes", accounts.MutesView.as_view()),
    path("follow_requests", accounts.RequestsView.as_view()),
    path("follow_requests/<id:account_id>/authorize", accounts.AcceptView.as_view()),
    path("follow_requests/<id:account_id>/reject", accounts.RejectView.as_view()),
    path("notifications", notifications.NotificationsView.as_view()),
    path("markers", notifications.MarkersView.as_view()),
    path("polls/<id:poll_id>", polls.PollView.as_view()),
    path("polls/<id:poll_id>/votes", polls.VotesView.as_view()),
    path("lists", lists.ListsView.as_view()),
    path("lists/<id:list_id>", lists.ListView.as_view()),
    path("lists/<id:list_id>/accounts", lists.MembersView.as_view()),
    path("filters", filters.FirstFiltersView.as_view()),
    path("filters/<id:filter_id>", filters.FirstFilterView.as_view()),
    path("preferences", misc.PreferencesView.as_view()),
    path("reports", reports.ReportsView.as_view()),
    path("trends", misc.TrendingTagsView.as_view()),
    path("trends/tags", misc.TrendingTagsView.as_view()),
    path("trends/statuses", misc.TrendingStatusesView.as_view()),
    path("trends/links", misc.EmptyView.as_view(scopes="statuses", opens_to_strangers=True)),
    path("suggestions", misc.FirstSuggestionsView.as_view()),
    path("tags/<str:tag>", tags.TagView.as_view()),
    path("tags/<str:tag>/follow", tags.follow),
    path("tags/<str:tag>/unfollow", tags.UnfollowTagView.as_view()),
    path("announcements", misc.AnnouncementsView.as_view()),
    path("announcements/<str:announcement_id>/dismiss", misc.DismissedView.as_view()),
    path("custom_emojis", misc.EmptyView.as_view()),
    path("directory", misc.EmptyView.as_view()),
    path("conversations", conversations.ConversationsView.as_view()),
    path("conversations/<id:conversation_id>", conversations.ConversationView.as_view()),
    path("conversations/<id:conversation_id>/read", conversations.ConversationReadView.as_view()),
    path("domain_blocks", misc.OwnEmptyView.as_view(scopes="blocks")),
    path("endorsements", misc.OwnEmptyView.as_view(scopes="accounts")),
    path("featured_tags", misc.OwnEmptyView.as_view(scopes="accounts")),
    path("featured_tags/suggestions", misc.OwnEmptyView.as_view(scopes="accounts")),
    path("followed_tags", tags.FollowedTagsView.as_view()),
    path("scheduled_statuses", scheduled.ScheduledStatusesView.as_view()),
    path("scheduled_statuses/<id:scheduled_id>", scheduled.ScheduledStatusView.as_view()),
]
second_patterns = [
    path("instance", instance.SecondInstanceView.as_view()),
    path("media", media.MediaView.as_view()),
    path("notifications", notifications.GroupsView.as_view()),
    path("notifications/unread_count", notifications.UnreadGroupsView.as_view()),
    path("notifications/policy", notification_requests.PolicyView.as_view()),
    path("notifications/<str:group_key>", notifications.GroupView.as_view()),
    path("notifications/<str:group_key>/accounts", notifications.GroupAccountsView.as_view()),
    path("notifications/<str:group_key>/dismiss", notifications.DismissGroupView.as_view()),
    path("search", search.SearchView.as_view()),
    path("suggestions", misc.SuggestionsView.as_view()),
    path("filters", filters.FiltersView.as_view()),
    path("filters/<id:filter_id>", filters.FilterView.as_view()),
    path("filters/<id:filter_id>/keywords", filters.KeywordsView.as_view()),
    path("filters/<id:filter_id>/statuses", filters.FilteredStatusesView.as_view()),
    path("filters/keywords/<id:filter_id>", filters.KeywordView.as_view()),
]
program_patterns = [
    path("oauth/token", oauth.TokenView.as_view(), name="oauth-token"),
    path("oauth/revoke", oauth.RevokeView.as_view(), name="oauth-revoke"),
    path(".well-known/oauth-authorization-server", oauth.metadata, name="oauth-metadata"),
    path("disputes/strikes/<number:decision_id>", views.strike, name="strike"),
    path(".well-known/nodeinfo", instance.nodeinfo_links, name="nodeinfo-links"),
    path("nodeinfo/2.0", instance.nodeinfo, name="nodeinfo"),
]
OWN = "auth|discover|items|live|me|search|seen|site|stream|timeline|users"
"""First words of the addresses of the site's own API. Errors everywhere else have Mastodon's shape."""


def with_slash(patterns: list[URLPattern], prefix: str) -> list[URLPattern]:
    """The same addresses with a slash at the end."""
    return [path(f"{prefix}{one.pattern}/", one.callback) for one in patterns]


urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("api/v1/", include("clientapi.stream_urls")),
    path("api/v2/", include(second_patterns)),
    *with_slash(urls.timeline_patterns, "api/v1/timelines/"),
    *with_slash(urls.status_patterns, "api/v1/statuses/"),
    *with_slash(urls.account_patterns, "api/v1/accounts/"),
    *with_slash(urls.notification_patterns, "api/v1/notifications/"),
    *with_slash(api_patterns, "api/v1/"),
    *with_slash(second_patterns, "api/v2/"),
    re_path(rf"^api/(?!(?:v1/(?:{OWN})|schema|docs)(?:/|\Z))", MissingView.as_view()),
    path("oauth/authorize", views.authorize, name="oauth-authorize"),
    path("oauth/authorize/", views.authorize, name="oauth-authorize-slash"),
    *program_patterns,
    *with_slash(program_patterns, ""),
]
