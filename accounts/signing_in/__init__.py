"""Signing in: log-in, sessions, tokens and apps, second factors, addresses, and the way back to a lost account."""
