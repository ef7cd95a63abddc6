-- Commands of people to runs, and their marks on attempts.

-- name: InvalidAttempts :many
-- The attempts of a run whose figures must not count.
SELECT * FROM invalid_attempts WHERE run_id = $1;

-- name: InsertMark :exec
INSERT INTO attempt_marks (id, run_id, trial, attempt, invalid, reason, given_by) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: Marks :many
SELECT * FROM attempt_marks WHERE run_id = $1 ORDER BY ordinal;

-- name: InsertCommand :exec
INSERT INTO run_commands (id, run_id, kind, trial, reason, given_by) VALUES ($1, $2, $3, $4, $5, $6);

-- name: CommandStates :many
SELECT * FROM command_states WHERE run_id = $1 ORDER BY ordinal;

-- name: OpenRunCommands :many
-- Commands that leading agents of open runs must know, oldest first.
SELECT o.run_id, o.id, o.kind, o.trial, o.given_by FROM run_commands o JOIN runs r ON r.id = o.run_id
WHERE r.ended_at IS NULL AND o.kind = ANY (sqlc.arg(led)::text[]) ORDER BY o.ordinal;

-- name: RunForCommand :one
-- Holds the run as it is until the transaction ends, so that a command and the run's next step follow one another.
SELECT id, campaign_id, state, trials, abort_reason, ended_at, confirm_move FROM runs WHERE id = $1 FOR UPDATE;

-- name: TrialVerdict :one
SELECT verdict FROM trials WHERE run_id = $1 AND trial = $2;

-- name: AttemptVerdict :one
SELECT verdict FROM attempts WHERE run_id = $1 AND trial = $2 AND attempt = $3;

-- name: SetWaiting :execrows
UPDATE runs SET state = 'waiting' WHERE id = $1 AND state = 'queued';

-- name: ConfirmMove :exec
UPDATE runs SET confirm_move = true WHERE id = $1;

-- name: ReopenTrial :execrows
-- One more attempt of the trial follows.
UPDATE trials SET verdict = NULL WHERE run_id = $1 AND trial = $2 AND verdict IS NOT NULL;

-- name: NewestLines :many
-- The newest records of every node's journal of a run that are lines, at most so
-- many of each.
SELECT j.node, j.seq, j.at
FROM run_nodes n
CROSS JOIN LATERAL (
    SELECT x.node, x.seq, x.at FROM journal x
    WHERE x.run_id = n.run_id AND x.node = n.node AND x.type NOT IN ('samples', 'telemetry') ORDER BY x.seq DESC LIMIT sqlc.arg(most)::integer) j
WHERE n.run_id = sqlc.arg(run_id) ORDER BY j.node, j.seq;

-- name: LinesAfter :many
SELECT node, seq, type, at, received_at, (body - '{radio,log,flows,sysctls,interfaces,qdiscs}'::text[])::jsonb AS body FROM journal
WHERE run_id = sqlc.arg(run_id) AND node = sqlc.arg(node) AND type NOT IN ('samples', 'telemetry') AND seq > sqlc.arg(after)::bigint ORDER BY seq LIMIT sqlc.arg(most)::integer;

-- name: AttemptOfTrial :one
SELECT sqlc.embed(a), t.iteration, t.treatment,
       (t.verdict IS NOT NULL AND NOT EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))::boolean AS last
FROM attempts a JOIN trials t ON t.run_id = a.run_id AND t.trial = a.trial
WHERE a.run_id = $1 AND a.trial = $2 AND a.attempt = $3;

-- name: UnattemptedTrials :many
-- Trials that have ended without any attempt: they were skipped.
SELECT t.trial, t.iteration, t.treatment FROM trials t
WHERE t.run_id = $1 AND t.verdict IS NOT NULL AND NOT EXISTS (SELECT FROM attempts a WHERE a.run_id = t.run_id AND a.trial = t.trial) ORDER BY t.trial;

-- name: UnconfirmedTrials :many
-- Trials whose last attempt succeeded for the client, while the server has not
-- recorded that all of it arrived as it was sent, and will not: it has ended its journal, or has a record
-- of an attempt that began after this one had ended.
SELECT t.trial, t.iteration, t.treatment, a.attempt
FROM trials t
JOIN attempts a ON a.run_id = t.run_id AND a.trial = t.trial
WHERE t.run_id = $1 AND t.verdict = 'succeeded' AND a.verdict = 'succeeded'
  AND NOT EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt)
  AND EXISTS (SELECT FROM flows f WHERE f.run_id = a.run_id AND f.trial = a.trial AND f.attempt = a.attempt
              AND NOT EXISTS (SELECT FROM receptions r WHERE r.run_id = f.run_id AND r.transfer = f.transfer AND r.digest = f.digest))
  AND (EXISTS (SELECT FROM run_nodes n WHERE n.run_id = t.run_id AND n.role = 'server' AND n.ended IS NOT NULL)
       OR a.ended_seq < (SELECT max(l.started_seq) FROM attempts l JOIN flows f ON f.run_id = l.run_id AND f.trial = l.trial AND f.attempt = l.attempt
                         JOIN receptions r ON r.run_id = f.run_id AND r.transfer = f.transfer WHERE l.run_id = $1))
ORDER BY t.trial;
