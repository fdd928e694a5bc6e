"""Pictures and videos: uploads, checks, files and their removal."""
