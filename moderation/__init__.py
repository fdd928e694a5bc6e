"""What is looked at before it is published, what is reported, and what moderators decided."""
