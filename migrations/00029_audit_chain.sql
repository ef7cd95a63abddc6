-- +goose Up

-- The audit log is a chain: an entry has the SHA-256 over the hash of the entry before
-- it and its own content (docs/security.md has the bytes). Numbers are given with the
-- hash, one after the other, so the primary key alone keeps two writers from continuing
-- the chain at the same place.
ALTER TABLE audit ALTER COLUMN id DROP IDENTITY;
ALTER TABLE audit ADD COLUMN hash bytea CHECK (octet_length(hash) = 32);

-- Entries that are there already are chained as they are now: what was done to them
-- before nobody can tell, what is done to them from here on can be found.
ALTER TABLE audit DISABLE TRIGGER audit_append_only;
-- +goose StatementBegin
DO $$
DECLARE
    last bytea := decode(repeat('00', 32), 'hex');
    e record;
    content bytea;
    part text;
BEGIN
    FOR e IN SELECT * FROM audit ORDER BY id LOOP
        content := convert_to('linktrial audit entry v1', 'UTF8') || '\x00'::bytea || last || int8send(e.id) || int8send((extract(epoch FROM e.at) * 1000000)::bigint);
        FOREACH part IN ARRAY ARRAY[e.user_name, e.via, e.address, e.action, e.detail, e.outcome, e.message] LOOP
            content := content || int4send(octet_length(convert_to(part, 'UTF8'))) || convert_to(part, 'UTF8');
        END LOOP;
        last := sha256(content);
        UPDATE audit SET hash = last WHERE id = e.id;
    END LOOP;
END $$;
-- +goose StatementEnd
ALTER TABLE audit ENABLE TRIGGER audit_append_only;
ALTER TABLE audit ALTER COLUMN hash SET NOT NULL;

-- Signed heads: the number and hash of what was the last entry at the time, signed by the
-- orchestrator. No reference to the entry: where one is removed, its head tells.
CREATE TABLE audit_heads (
    entry      bigint PRIMARY KEY,
    hash       bytea NOT NULL CHECK (octet_length(hash) = 32),
    signed_at  timestamptz NOT NULL,
    key_id     text NOT NULL,
    signature  bytea NOT NULL
);
CREATE TRIGGER audit_heads_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_heads
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
