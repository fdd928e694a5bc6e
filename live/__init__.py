"""Live sessions: a feed of what followed hosts have live, planned and recorded."""
