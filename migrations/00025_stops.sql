-- +goose Up

-- When listeners were not in order, and agents did not run, of few records among many.
DROP INDEX journal_outages;
CREATE INDEX journal_outages ON journal (run_id, node, seq) WHERE type IN ('run-resumed', 'listener-ready', 'listener-failed', 'agent-stopped');
