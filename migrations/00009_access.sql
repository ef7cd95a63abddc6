-- +goose Up

CREATE TABLE users (
    name           text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9._-]{0,31}$'),
    role           text NOT NULL CHECK (role IN ('viewer', 'director', 'admin')),
    -- argon2id, as a PHC string.
    password       text NOT NULL CHECK (password LIKE '$argon2id$%'),
    disabled       boolean NOT NULL DEFAULT false,
    created_at     timestamptz NOT NULL,
    last_login_at  timestamptz
);

-- Of a session only what its cookie's secret hashes to.
CREATE TABLE sessions (
    hash        bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    user_name   text NOT NULL REFERENCES users (name),
    created_at  timestamptz NOT NULL,
    used_at     timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL CHECK (expires_at > created_at)
);
CREATE INDEX sessions_of_user ON sessions (user_name);

-- Revoked ones stay, so that the audit log can name them.
CREATE TABLE api_tokens (
    id          text PRIMARY KEY CHECK (id <> ''),
    hash        bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    user_name   text NOT NULL REFERENCES users (name),
    name        text NOT NULL CHECK (name <> ''),
    role        text NOT NULL CHECK (role IN ('viewer', 'director', 'admin')),
    of_login    boolean NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL CHECK (expires_at > created_at),
    used_at     timestamptz,
    revoked_at  timestamptz
);
CREATE INDEX api_tokens_of_user ON api_tokens (user_name);
-- Two tokens that work have different names, so that one can be revoked by it.
CREATE UNIQUE INDEX api_tokens_name ON api_tokens (user_name, name) WHERE revoked_at IS NULL;

CREATE TABLE audit (
    id         bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    at         timestamptz NOT NULL,
    -- No reference: who failed to log in need not exist.
    user_name  text NOT NULL,
    via        text NOT NULL,
    address    text NOT NULL,
    action     text NOT NULL CHECK (action <> ''),
    detail     text NOT NULL,
    outcome    text NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
    message    text NOT NULL
);
CREATE INDEX audit_of_user ON audit (user_name, id);
CREATE INDEX audit_at ON audit (at);

-- +goose StatementBegin
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only added to';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
