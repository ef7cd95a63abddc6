-- +goose Up

-- Who vouches for a run's sheet. A run without a row was queued by an earlier
-- version; agents refuse it.
CREATE TABLE run_signatures (
    run_id     text PRIMARY KEY REFERENCES runs (id),
    key_id     text NOT NULL CHECK (key_id <> ''),
    signature  bytea NOT NULL CHECK (length(signature) = 64)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON run_signatures FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What people say of digests of drivers that the orchestrator does not have
-- itself; the newest word counts.
CREATE TABLE driver_approvals (
    ordinal   bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    protocol  text NOT NULL CHECK (protocol <> ''),
    digest    text NOT NULL CHECK (digest ~ '^(image:)?sha256:[0-9a-f]{64}$'),
    approved  boolean NOT NULL,
    reason    text NOT NULL DEFAULT '',
    given_by  text NOT NULL DEFAULT '',
    given_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX driver_approvals_digest ON driver_approvals (protocol, digest, ordinal);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON driver_approvals FOR EACH ROW EXECUTE FUNCTION refuse_change();
