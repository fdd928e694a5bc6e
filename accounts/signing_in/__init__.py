"""Signing in: log-in, sessions, tokens, apps, second factors, addresses and recovery."""
