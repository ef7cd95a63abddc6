-- +goose Up

-- Plans that start again and again by a rule, with the text as it was when that was said.
CREATE TABLE recurrences (
    id                 text PRIMARY KEY CHECK (id <> ''),
    plan               text NOT NULL CHECK (plan <> ''),
    plan_text          bytea NOT NULL,
    rule               text NOT NULL CHECK (rule <> ''), -- as orchestrator/library/recurrence writes it
    estimated_seconds  double precision NOT NULL CHECK (estimated_seconds >= 0),
    patience_seconds   double precision NOT NULL CHECK (patience_seconds > 0), -- of each start
    name               text NOT NULL, -- of the campaigns, before the time of each start; empty: the plan's
    given_by           text NOT NULL,
    given_at           timestamptz NOT NULL,
    -- 'ended': the rule has no further start.
    state              text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'ended', 'removed')),
    -- Only starts later than this are still to be entered into schedules.
    entered_until      timestamptz NOT NULL
);

-- A start by a rule is a schedule of its own, entered when the one before has ended.
ALTER TABLE schedules ADD COLUMN recurrence_id text REFERENCES recurrences (id);
-- Which start of the rule it is, from 1; its seed follows from it.
ALTER TABLE schedules ADD COLUMN number integer CHECK (number >= 1);
ALTER TABLE schedules ADD CHECK ((recurrence_id IS NULL) = (number IS NULL));
CREATE UNIQUE INDEX schedules_by_number ON schedules (recurrence_id, number);
CREATE UNIQUE INDEX schedules_next_of_recurrence ON schedules (recurrence_id) WHERE ended_at IS NULL;

-- 'skipped': the run that the start before had begun was still under way.
ALTER TABLE schedules DROP CONSTRAINT schedules_state_check;
ALTER TABLE schedules ADD CONSTRAINT schedules_state_check
    CHECK (state IN ('waiting', 'starting', 'started', 'failed', 'missed', 'cancelled', 'skipped'));
