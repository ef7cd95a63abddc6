-- +goose Up

-- Users of an OpenID Connect provider: whose account there is whose here. The provider's
-- subject stays the same when a person's name changes, and no other person gets it.
CREATE TABLE provider_accounts (
    user_name  text PRIMARY KEY REFERENCES users (name),
    issuer     text NOT NULL CHECK (issuer <> ''),
    subject    text NOT NULL CHECK (subject <> ''),
    UNIQUE (issuer, subject)
);

-- They have no password here.
ALTER TABLE users DROP CONSTRAINT users_password_check;
ALTER TABLE users ADD CONSTRAINT users_password_check CHECK (password = '' OR password LIKE '$argon2id$%');
