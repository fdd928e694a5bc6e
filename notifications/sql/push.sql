-- A push subscription ends in the statement that ends its session or its token, whatever program sends that.
ALTER TABLE notifications_pushsubscription
    ADD CONSTRAINT push_of_session FOREIGN KEY (session_key) REFERENCES django_session ON DELETE CASCADE,
    ADD CONSTRAINT push_of_token FOREIGN KEY (token_id) REFERENCES oauth2_provider_accesstoken ON DELETE CASCADE;
