"""What timelines know of a user: the level, the policy of inboxes, and big-V."""
