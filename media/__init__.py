"""Pictures and videos: uploads, checks, files and their removal. Knows owners only by id."""
