-- +goose Up

-- The secret of a second factor as the orchestrator sealed it, with a key of its data
-- folder (docs/security.md): nonce, 20 encrypted bytes, tag. Secrets of before are sealed
-- at the orchestrator's start, and are null from then on.
ALTER TABLE second_factors ALTER COLUMN secret DROP NOT NULL;
ALTER TABLE second_factors ADD COLUMN sealed bytea CHECK (octet_length(sealed) = 48);
ALTER TABLE second_factors ADD CONSTRAINT second_factors_one_secret CHECK ((secret IS NULL) <> (sealed IS NULL));
