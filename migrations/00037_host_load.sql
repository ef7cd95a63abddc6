-- +goose Up

-- What the leading node's processors kept from the programs of the attempt, as
-- executor/journal.HostLoad. Null: it was not measured.
ALTER TABLE attempts ADD COLUMN host jsonb;
