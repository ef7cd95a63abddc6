-- What passed between nodes and orchestrator during attempts, with in-band control.

-- name: ControlCounted :one
-- How many records of it there are.
SELECT count(*) FROM journal WHERE run_id = $1 AND type = 'control-counted';

-- name: ControlRecords :many
SELECT j.node, j.seq, j.body FROM journal j WHERE j.run_id = $1 AND j.type = 'control-counted' ORDER BY j.node, j.seq;

-- name: ControlUndecided :many
-- Ended attempts of which it is not decided yet what passed, once it is known whether
-- another one of the trial follows by itself, and what the leading node counted. counts:
-- for or against its protocol, and nobody has marked or unmarked it; the rest is as in
-- UnexplainedFailures.
SELECT a.trial, a.attempt, a.started_at, coalesce(a.duration_ns, 0)::bigint AS duration_ns, a.reason,
       coalesce((j.body -> 'control')::text, '')::text AS control,
       (a.verdict IN ('succeeded', 'failed', 'timed-out')
        AND NOT EXISTS (SELECT FROM attempt_marks m WHERE m.run_id = a.run_id AND m.trial = a.trial AND m.attempt = a.attempt))::boolean AS counts,
       (NOT EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))::boolean AS last,
       (SELECT count(*) FROM attempt_marks m WHERE m.run_id = a.run_id AND m.trial = a.trial AND m.given_by = sqlc.arg(self)::text) AS marks
FROM attempts a JOIN trials t ON t.run_id = a.run_id AND t.trial = a.trial
JOIN run_nodes n ON n.run_id = a.run_id AND n.role = 'client'
JOIN journal j ON j.run_id = a.run_id AND j.node = n.node AND j.seq = a.ended_seq
WHERE a.run_id = sqlc.arg(run_id) AND a.control IS NULL
  AND (sqlc.arg(all_of_them)::boolean OR t.verdict IS NOT NULL OR EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))
ORDER BY a.trial, a.attempt;

-- name: SetControl :exec
UPDATE attempts SET control = sqlc.arg(control)::jsonb WHERE run_id = $1 AND trial = $2 AND attempt = $3;
