"""Notifications of likes, replies, reposts, mentions, follows and live sessions."""
