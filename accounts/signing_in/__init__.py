"""Signing in: log-in, sessions, tokens, apps, second factors and recovery."""
