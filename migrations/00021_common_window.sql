-- +goose Up

-- What several flows that times bound delivered within one time, as
-- orchestrator/report.CommonWindow: made of the server's samples, which may be
-- deleted later. NULL: no such attempt, or its samples were gone already.
ALTER TABLE attempts ADD COLUMN common_window jsonb;
