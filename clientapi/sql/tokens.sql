-- Indexes that find expired tokens and codes of apps. The tables of django-oauth-toolkit have none.
CREATE INDEX app_token_end ON oauth2_provider_accesstoken (expires);
CREATE INDEX app_code_end ON oauth2_provider_grant (expires);
