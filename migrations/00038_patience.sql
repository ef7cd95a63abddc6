-- +goose Up

-- How late a scheduled plan may start: for so long it is tried again where a node is
-- missing, or where the orchestrator itself was not running.
ALTER TABLE schedules ADD COLUMN patience_seconds double precision NOT NULL DEFAULT 120 CHECK (patience_seconds > 0);
