-- +goose Up

-- When listeners were not in order, of few records among many.
CREATE INDEX journal_outages ON journal (run_id, node, seq) WHERE type IN ('run-resumed', 'listener-ready', 'listener-failed');
