"""Notifications of likes, replies, reposts, mentions, follows, live sessions, and posts of people with a bell."""
