-- name: Marks :many
SELECT * FROM attempt_marks WHERE run_id = $1 ORDER BY ordinal;

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
-- Trials that have ended without any attempt: they were skipped, or not needed.
SELECT t.trial, t.iteration, t.treatment, t.not_needed FROM trials t
WHERE t.run_id = $1 AND t.verdict IS NOT NULL AND NOT EXISTS (SELECT FROM attempts a WHERE a.run_id = t.run_id AND a.trial = t.trial) ORDER BY t.trial;

-- name: NotNeededTrials :many
-- Trials that the plan's rule to stop by ended before their first attempt.
SELECT trial FROM trials WHERE run_id = $1 AND not_needed ORDER BY trial;

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

-- name: GuestsEnded :one
-- Whether a record of a campaign in virtual time has been stored: they come when all its
-- guests have ended.
SELECT EXISTS (SELECT FROM run_nodes n JOIN runs r ON r.id = n.run_id WHERE r.campaign_id = $1 AND n.committed_seq > 0);

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

-- name: Misbehaviours :many
-- What drivers did wrong, records that were refused, and those that came after the end of their journal.
SELECT seq, node, type, body FROM journal WHERE run_id = $1 AND type IN ('driver-misbehaved', 'refused', 'late') ORDER BY node, seq LIMIT 200;

-- name: RefusedStatements :many
-- Why what nodes signed of their journals was refused.
SELECT node, unsigned FROM run_nodes WHERE run_id = $1 AND unsigned <> '' ORDER BY node;
