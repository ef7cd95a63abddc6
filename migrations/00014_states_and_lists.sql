-- +goose Up

-- As before, but that an order which was passed over also has the time at which
-- the leading agent dealt with it.
CREATE OR REPLACE VIEW order_states AS
SELECT o.ordinal, o.id, o.run_id, o.kind, o.trial, o.reason, o.given_by, o.given_at,
       CASE o.kind WHEN 'release' THEN o.given_at
                   WHEN 'abort' THEN (SELECT r.ended_at FROM runs r WHERE r.id = o.run_id)
                   ELSE c.at
       END AS obeyed_at,
       coalesce(c.passed_over, '')::text AS passed_over
FROM run_orders o
LEFT JOIN LATERAL (
    SELECT j.at, j.body ->> 'passed_over' AS passed_over FROM journal j
    WHERE j.run_id = o.run_id AND j.type = 'command' AND j.body ->> 'id' = o.id LIMIT 1) c ON true;

-- An emulated radio's report is kept apart from its row, so that a campaign's
-- attempts lie on few pages.
ALTER TABLE attempts SET (toast_tuple_target = 256);

-- Lists of campaigns count what went wrong.
CREATE INDEX IF NOT EXISTS attempts_not_succeeded ON attempts (run_id) WHERE verdict <> 'succeeded';
