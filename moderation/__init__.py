"""Review before publication, reports, cases and bans."""
