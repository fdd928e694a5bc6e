"""Facts about users for timelines: level, inbox policy and big-V."""
