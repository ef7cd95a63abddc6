-- +goose Up

-- A run that waits for people to move its nodes.
ALTER TABLE runs DROP CONSTRAINT runs_state_check;
ALTER TABLE runs ADD CONSTRAINT runs_state_check CHECK (state IN
    ('queued', 'waiting', 'preparing', 'running', 'collecting', 'completed', 'aborted', 'stopped'));
-- Somebody has to say that the nodes stand where the topology has them.
ALTER TABLE runs ADD COLUMN confirm_move boolean NOT NULL DEFAULT false;

-- +goose StatementBegin
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
-- +goose StatementEnd

-- What people ordered of a run under way. Whether the leading agent has obeyed
-- follows from its journal.
CREATE TABLE run_orders (
    ordinal   bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id        text NOT NULL UNIQUE CHECK (id <> ''),
    run_id    text NOT NULL REFERENCES runs (id),
    kind      text NOT NULL CHECK (kind IN ('pause', 'resume', 'abort', 'skip', 'repeat', 'release')),
    trial     integer,
    reason    text NOT NULL DEFAULT '',
    given_by  text NOT NULL DEFAULT '',
    given_at  timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (run_id, trial) REFERENCES trials (run_id, trial),
    CHECK ((trial IS NOT NULL) = (kind IN ('skip', 'repeat')))
);
CREATE INDEX run_orders_run ON run_orders (run_id, ordinal);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON run_orders FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What people say of an attempt's figure; the newest word counts.
CREATE TABLE attempt_marks (
    ordinal   bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id        text NOT NULL UNIQUE CHECK (id <> ''),
    run_id    text NOT NULL,
    trial     integer NOT NULL,
    attempt   integer NOT NULL,
    invalid   boolean NOT NULL, -- false: takes earlier words back
    reason    text NOT NULL DEFAULT '',
    given_by  text NOT NULL DEFAULT '',
    given_at  timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (run_id, trial, attempt) REFERENCES attempts (run_id, trial, attempt),
    CHECK (NOT invalid OR reason <> '')
);
CREATE INDEX attempt_marks_attempt ON attempt_marks (run_id, trial, attempt, ordinal);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON attempt_marks FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The attempts whose figures must not count, with the word that says so.
CREATE VIEW invalid_attempts AS
SELECT m.run_id, m.trial, m.attempt, m.reason, m.given_by, m.given_at
FROM (SELECT DISTINCT ON (run_id, trial, attempt) * FROM attempt_marks ORDER BY run_id, trial, attempt, ordinal DESC) m
WHERE m.invalid;

-- When a record came; unknown of those that came before this was kept.
ALTER TABLE journal ADD COLUMN received_at timestamptz;
ALTER TABLE journal ALTER COLUMN received_at SET DEFAULT now();
CREATE INDEX journal_commands ON journal (run_id) WHERE type = 'command';
-- For views of the journal, which show no samples.
CREATE INDEX journal_lines ON journal (run_id, node, seq) WHERE type <> 'samples';

-- Orders with what the leading agent's journal says of them.
CREATE VIEW order_states AS
SELECT o.ordinal, o.id, o.run_id, o.kind, o.trial, o.reason, o.given_by, o.given_at,
       CASE WHEN coalesce(c.passed_over, '') = '' THEN
           CASE o.kind WHEN 'release' THEN o.given_at
                       WHEN 'abort' THEN (SELECT r.ended_at FROM runs r WHERE r.id = o.run_id)
                       ELSE c.at END
       END AS obeyed_at,
       coalesce(c.passed_over, '')::text AS passed_over
FROM run_orders o
LEFT JOIN LATERAL (
    SELECT j.at, j.body ->> 'passed_over' AS passed_over FROM journal j
    WHERE j.run_id = o.run_id AND j.type = 'command' AND j.body ->> 'id' = o.id LIMIT 1) c ON true;

CREATE OR REPLACE VIEW run_overview AS
SELECT r.id, r.ordinal, r.campaign_id, c.name AS campaign, c.plan, r.cell, r.state, r.message, r.sheet_hash,
       r.radio, r.topology, r.size_bytes, r.trials, r.created_at, r.started_at, r.ended_at, r.estimated_seconds,
       t.trials_ended, a.attempts_failed,
       t.estimated_seconds_ended, t.estimated_seconds_left,
       a.measured_seconds_ended,
       coalesce((SELECT n.provenance ->> 'place' FROM run_nodes n WHERE n.run_id = r.id AND n.role = 'client'), '')::text AS place,
       -- Whether the newest order to pause or resume is to pause, whether the
       -- leading agent has dealt with it, and whether it holds the run now.
       coalesce(p.kind = 'pause', false)::boolean AS pause_ordered,
       coalesce(p.obeyed_at IS NOT NULL OR p.passed_over <> '', false)::boolean AS pause_settled,
       coalesce((SELECT j.body ->> 'kind' = 'pause' FROM journal j
                 WHERE j.run_id = r.id AND j.type = 'command' AND j.body ->> 'kind' IN ('pause', 'resume') AND j.body ->> 'passed_over' IS NULL
                 ORDER BY j.seq DESC LIMIT 1), false)::boolean AS held,
       (SELECT coalesce(array_agg(n.node ORDER BY n.role), '{}') FROM run_nodes n WHERE n.run_id = r.id)::text[] AS nodes
FROM runs r
JOIN campaigns c ON c.id = r.campaign_id
CROSS JOIN LATERAL (
    SELECT count(t.verdict)::integer AS trials_ended,
           coalesce(sum(r.estimated_seconds[t.trial + 1]) FILTER (WHERE t.verdict IS NOT NULL), 0)::double precision AS estimated_seconds_ended,
           coalesce(sum(r.estimated_seconds[t.trial + 1]) FILTER (WHERE t.verdict IS NULL), 0)::double precision AS estimated_seconds_left
    FROM trials t WHERE t.run_id = r.id) t
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE a.verdict <> 'succeeded')::integer AS attempts_failed,
           (coalesce(sum(a.duration_ns) FILTER (WHERE e.verdict IS NOT NULL), 0) / 1e9)::double precision AS measured_seconds_ended
    FROM attempts a JOIN trials e ON e.run_id = a.run_id AND e.trial = a.trial
    WHERE a.run_id = r.id) a
LEFT JOIN LATERAL (
    SELECT o.kind, o.obeyed_at, o.passed_over FROM order_states o
    WHERE o.run_id = r.id AND o.kind IN ('pause', 'resume') ORDER BY o.ordinal DESC LIMIT 1) p ON true;
