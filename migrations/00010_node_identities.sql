-- +goose Up

-- One-time tokens with which nodes enrol. Only the hash is kept: the database,
-- or a copy of it, enrols nobody.
CREATE TABLE node_tokens (
    hash          bytea PRIMARY KEY CHECK (length(hash) = 32),
    node          text NOT NULL CHECK (node ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'),
    created_at    timestamptz NOT NULL,
    created_by    text NOT NULL,
    expires_at    timestamptz NOT NULL CHECK (expires_at > created_at),
    used_at       timestamptz,
    used_from     text NOT NULL DEFAULT '',
    withdrawn_at  timestamptz
);
CREATE INDEX node_tokens_open ON node_tokens (node) WHERE used_at IS NULL AND withdrawn_at IS NULL;

-- Every certificate that the authority gave to a node. A certificate that is
-- not here is refused, whoever signed it.
CREATE TABLE node_certificates (
    serial      text PRIMARY KEY CHECK (serial <> ''),
    node        text NOT NULL,
    der         bytea NOT NULL,
    -- SHA-256 of the public key.
    key_hash    bytea NOT NULL CHECK (length(key_hash) = 32),
    -- NULL: a renewal.
    token_hash  bytea UNIQUE REFERENCES node_tokens (hash),
    issued_at   timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL CHECK (expires_at > issued_at),
    revoked_at  timestamptz,
    revoked_by  text NOT NULL DEFAULT '',
    reason      text NOT NULL DEFAULT ''
);
CREATE INDEX node_certificates_newest ON node_certificates (node, issued_at DESC);
