-- +goose Up

-- Of runs with in-band control: the packets between each node and the orchestrator that
-- passed during the attempt, as the nodes counted them. Null: it is not decided yet, or
-- control is not in-band.
ALTER TABLE attempts ADD COLUMN control jsonb;

-- The records that it is decided from, of few among many.
CREATE INDEX journal_control ON journal (run_id, node, seq) WHERE type = 'control-counted';
