-- +goose Up

-- What of the plan's rules of validity could not be decided about an attempt, one a
-- line. Null: none was applied yet, or the plan has no rules.
ALTER TABLE attempts ADD COLUMN undecided text;

-- The records that rules are decided from, of few among many.
CREATE INDEX journal_watched ON journal (run_id, node, seq) WHERE type = 'watched';
