"""The pages of accounts: views and forms."""
