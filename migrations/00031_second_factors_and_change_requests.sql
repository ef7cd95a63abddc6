-- +goose Up

-- A user's second factor: time-based one-time passwords (TOTP, RFC 6238).
CREATE TABLE second_factors (
    user_name     text PRIMARY KEY REFERENCES users (name),
    secret        text NOT NULL CHECK (secret ~ '^[A-Z2-7]{32}$'), -- base32 of 20 bytes
    created_at    timestamptz NOT NULL,
    confirmed_at  timestamptz, -- null: no code of it was given yet, and no login asks for one
    -- The time step of the last code that was taken: no code is taken twice, and none of
    -- an earlier step.
    last_step     bigint NOT NULL DEFAULT 0
);

-- Codes for when the second factor is lost, each good once. Of a code only its hash.
CREATE TABLE recovery_codes (
    user_name  text NOT NULL REFERENCES users (name),
    hash       bytea NOT NULL CHECK (octet_length(hash) = 32),
    used_at    timestamptz,
    PRIMARY KEY (user_name, hash)
);

-- Changes of trust that one admin requested, where they take a second one. A row is
-- decided once, and nothing else of it ever changes.
CREATE TABLE change_requests (
    id            text PRIMARY KEY,
    hash          bytea NOT NULL CHECK (octet_length(hash) = 32), -- over what is requested (docs/security.md)
    action        text NOT NULL CHECK (action IN ('rotate-signing-key', 'approve-driver')),
    protocol      text NOT NULL,
    digest        text NOT NULL,
    reason        text NOT NULL,
    key_id        text NOT NULL,
    requested_by  text NOT NULL REFERENCES users (name),
    requested_at  timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL CHECK (expires_at > requested_at),
    decided_by    text REFERENCES users (name),
    decided_at    timestamptz,
    confirmed     boolean,
    CHECK ((decided_by IS NULL) = (decided_at IS NULL) AND (decided_by IS NULL) = (confirmed IS NULL)),
    -- Also where the program is wrong.
    CHECK (NOT confirmed OR decided_by <> requested_by)
);
CREATE INDEX change_requests_at ON change_requests (requested_at);

-- +goose StatementBegin
CREATE FUNCTION change_request_is_decided_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.decided_at IS NOT NULL
        OR (NEW.id, NEW.hash, NEW.action, NEW.protocol, NEW.digest, NEW.reason, NEW.key_id, NEW.requested_by, NEW.requested_at, NEW.expires_at)
           IS DISTINCT FROM (OLD.id, OLD.hash, OLD.action, OLD.protocol, OLD.digest, OLD.reason, OLD.key_id, OLD.requested_by, OLD.requested_at, OLD.expires_at) THEN
        RAISE EXCEPTION 'a change request is decided once, and what it requests does not change';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER change_request_decided_once BEFORE UPDATE ON change_requests
    FOR EACH ROW EXECUTE FUNCTION change_request_is_decided_once();
CREATE TRIGGER change_request_kept BEFORE DELETE ON change_requests
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
