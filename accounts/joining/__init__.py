"""Joining: sign-up, invitations, applications and the first admin."""
