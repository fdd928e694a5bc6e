"""What others did that concerns a user: likes, replies, reposts, mentions, follows."""
