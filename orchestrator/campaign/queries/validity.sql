-- What rules of validity are decided from.

-- name: UnjudgedAttempts :many
-- Attempts of a run to which no rule was applied yet, once it is known whether another one
-- of the trial follows by itself. last: none does. counts: nobody has marked or unmarked
-- it. What cannot be decided of the others is noted as well, so that it follows from the
-- journals alone, whenever a person gave a mark.
SELECT a.trial, a.attempt, a.started_at, a.started_seq, coalesce(a.duration_ns, 0)::bigint AS duration_ns, a.verdict::text AS verdict, a.reason,
       (NOT EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))::boolean AS last,
       (SELECT count(*) FROM attempt_marks m WHERE m.run_id = a.run_id AND m.trial = a.trial AND m.given_by = sqlc.arg(self)::text) AS marks,
       (NOT EXISTS (SELECT FROM attempt_marks m WHERE m.run_id = a.run_id AND m.trial = a.trial AND m.attempt = a.attempt))::boolean AS counts
FROM attempts a JOIN trials t ON t.run_id = a.run_id AND t.trial = a.trial
WHERE a.run_id = sqlc.arg(run_id) AND a.undecided IS NULL AND a.verdict IN ('succeeded', 'failed', 'timed-out')
  AND (t.verdict IS NOT NULL OR EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))
ORDER BY a.trial, a.attempt;

-- name: CarriedBytes :many
-- What the flows of an attempt have delivered, as far as it is known.
SELECT flow, coalesce(size_bytes, (last_sample ->> 'acked_bytes')::bigint, (last_sample ->> 'sent_bytes')::bigint, 0)::bigint AS bytes
FROM flows WHERE run_id = $1 AND trial = $2 AND attempt = $3;

-- name: ProbedBytes :one
SELECT coalesce(sum((metrics ->> 'sent_bytes')::bigint), 0)::bigint FROM probes WHERE run_id = $1 AND trial = $2 AND attempt = $3;

-- name: WatchedRecords :many
-- What a node watched, after the records that are known already.
SELECT seq, body FROM journal WHERE run_id = $1 AND node = $2 AND type = 'watched' AND seq > sqlc.arg(after)::bigint ORDER BY seq;

-- name: NewestRecord :one
SELECT seq, at FROM journal WHERE run_id = $1 AND node = $2 ORDER BY seq DESC LIMIT 1;

-- name: NewestReadings :many
-- When each source that gave one of these readings was last read on each node; failed:
-- it could not be.
SELECT DISTINCT ON (t.node, t.source) t.node, t.source, t.at, (t.error <> '')::boolean AS failed FROM telemetry t
WHERE t.run_id = sqlc.arg(run_id) AND t.source IN (SELECT x.source FROM telemetry x WHERE x.run_id = sqlc.arg(run_id) AND x.name = ANY (sqlc.arg(names)::text[]))
ORDER BY t.node, t.source, t.seq DESC;

-- name: SetUndecided :exec
UPDATE attempts SET undecided = sqlc.arg(undecided)::text WHERE run_id = $1 AND trial = $2 AND attempt = $3;
