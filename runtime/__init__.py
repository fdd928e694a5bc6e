"""Processes: settings, embedded servers, supervisor, logs, metrics, and the commands that run the site."""
