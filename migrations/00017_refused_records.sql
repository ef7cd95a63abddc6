-- +goose Up
-- A record that cannot be stored keeps its place in the journal, as a record of type
-- 'refused' with the reason. A run's page and its watchers show both types.
DROP INDEX journal_misbehaved;
CREATE INDEX journal_faults ON journal (run_id) WHERE type IN ('driver-misbehaved', 'refused');
