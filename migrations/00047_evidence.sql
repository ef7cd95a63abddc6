-- +goose Up

-- What a campaign's evidence is made of (docs/evidence.md): the journals as the nodes wrote
-- them, byte for byte, and what each node signed of its own.

-- The records of a delivery, compressed (Zstandard, RFC 8878). The table journal has the same
-- in a form that can be asked; this one is for whoever checks it. Records with samples are in
-- rows of their own, which are deleted with the samples.
CREATE TABLE journal_pages (
    run_id     text NOT NULL,
    node       text NOT NULL,
    first_seq  bigint NOT NULL CHECK (first_seq >= 1),
    last_seq   bigint NOT NULL CHECK (last_seq >= first_seq),
    samples    boolean NOT NULL,
    content    bytea NOT NULL,
    -- No foreign key: a page is stored in one statement or transaction with its records, which
    -- have one, and a second check is a tenth of what a small delivery takes.
    PRIMARY KEY (run_id, node, first_seq)
);
COMMENT ON COLUMN journal_pages.content IS 'each record as delivered, its length before it as an unsigned varint; then compressed';
ALTER TABLE journal_pages ALTER COLUMN content SET STORAGE EXTERNAL;

ALTER TABLE run_nodes
    -- executor/journal.Statement as the node encoded and signed it, the signature (SSHSIG), and
    -- the certificate (DER) whose key made it. Null: the node has signed nothing.
    ADD COLUMN statement bytea,
    ADD COLUMN statement_signature text,
    ADD COLUMN statement_certificate bytea,
    -- Why there is no signature, or why the one that came was refused; empty: there is one, or
    -- none is known of yet.
    ADD COLUMN unsigned text NOT NULL DEFAULT '',
    ADD CHECK ((statement IS NULL) = (statement_signature IS NULL) AND (statement IS NULL) = (statement_certificate IS NULL));
