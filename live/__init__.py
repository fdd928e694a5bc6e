"""Live sessions: a feed of those that the followed host, exact while their states change under the reader."""
