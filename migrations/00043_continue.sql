-- +goose Up

-- A command has one name everywhere: what was "release" here is "continue" as on the
-- command line and on the pages.
ALTER TABLE run_commands DISABLE TRIGGER append_only;
ALTER TABLE run_commands DROP CONSTRAINT IF EXISTS run_orders_kind_check;
ALTER TABLE run_commands DROP CONSTRAINT IF EXISTS run_commands_kind_check;
UPDATE run_commands SET kind = 'continue' WHERE kind = 'release';
ALTER TABLE run_commands ADD CONSTRAINT run_commands_kind_check CHECK (kind IN ('pause', 'resume', 'abort', 'skip', 'repeat', 'continue'));
ALTER TABLE run_commands ENABLE TRIGGER append_only;

CREATE OR REPLACE VIEW command_states AS
SELECT o.ordinal, o.id, o.run_id, o.kind, o.trial, o.reason, o.given_by, o.given_at,
       CASE o.kind WHEN 'continue' THEN o.given_at
                   WHEN 'abort' THEN (SELECT r.ended_at FROM runs r WHERE r.id = o.run_id)
                   ELSE c.at
       END AS applied_at,
       coalesce(c.passed_over, '')::text AS rejected
FROM run_commands o
LEFT JOIN LATERAL (
    SELECT j.at, j.body ->> 'passed_over' AS passed_over FROM journal j
    WHERE j.run_id = o.run_id AND j.type = 'command' AND j.body ->> 'id' = o.id LIMIT 1) c ON true;
