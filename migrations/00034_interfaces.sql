-- +goose Up

-- The radios' interfaces that were not in order, beside listeners and agents.
DROP INDEX journal_outages;
CREATE INDEX journal_outages ON journal (run_id, node, seq) WHERE type IN ('run-resumed', 'listener-ready', 'listener-failed', 'agent-stopped', 'interface-failed', 'interface-ready');
