-- name: Trials :many
SELECT * FROM trials WHERE run_id = $1 ORDER BY trial;

-- name: Attempts :many
SELECT * FROM attempts WHERE run_id = $1 ORDER BY trial, attempt;

-- name: AttemptsAfter :many
-- The attempts that have ended since, and those that have not. An attempt is
-- settled once it is known whether another one follows.
SELECT sqlc.embed(a), t.iteration, t.treatment, (a.ended_seq IS NOT NULL AND (t.verdict IS NOT NULL OR r.ended_at IS NOT NULL OR later.yes))::boolean AS settled,
       (t.verdict IS NOT NULL AND NOT later.yes)::boolean AS last
FROM attempts a
JOIN trials t ON t.run_id = a.run_id AND t.trial = a.trial
JOIN runs r ON r.id = a.run_id
CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt) AS yes) later
WHERE a.run_id = sqlc.arg(run_id) AND (a.ended_seq > sqlc.arg(after_seq)::bigint OR a.ended_seq IS NULL)
ORDER BY a.ended_seq NULLS LAST, a.started_seq;

-- name: Flows :many
SELECT * FROM flows WHERE run_id = $1 ORDER BY trial, attempt, flow;

-- name: FlowsOfAttempt :many
SELECT * FROM flows WHERE run_id = $1 AND trial = $2 AND attempt = $3 ORDER BY flow;

-- name: Receptions :many
SELECT * FROM receptions WHERE run_id = $1 AND transfer IS NOT NULL ORDER BY seq;

-- name: ClockOffsets :many
SELECT * FROM clock_offsets WHERE run_id = $1 ORDER BY node, seq;

-- name: SamplesOfTrial :many
SELECT * FROM samples
WHERE run_id = $1 AND trial = $2
ORDER BY attempt, flow, side, elapsed_ns;

-- name: Misbehaviours :many
SELECT seq, node, body FROM journal WHERE run_id = $1 AND type = 'driver-misbehaved' ORDER BY node, seq LIMIT 200;
