-- What the state of runs is made from, and its changes.

-- name: OpenRuns :many
-- A run waits for the move that began its topology in the campaign, whichever
-- run of that topology somebody let continue: the one that was to wait for it may
-- have been aborted. All moves are found in one pass over the campaigns: each review
-- of the runs asks this, and a campaign can have a thousand of them.
WITH placed AS (
  SELECT p.id, max(p.ordinal) FILTER (WHERE p.confirm_move) OVER (PARTITION BY p.campaign_id ORDER BY p.ordinal) AS first
  FROM runs p WHERE p.campaign_id IN (SELECT o.campaign_id FROM runs o WHERE o.ended_at IS NULL))
SELECT r.id, r.campaign_id, r.state, r.trials, r.sheet_hash, r.abort_reason, r.abort_fault, r.abort_at, r.collecting_at, r.message,
       (m.first IS NOT NULL)::boolean AS confirm_move,
       EXISTS (SELECT FROM run_commands o JOIN runs p ON p.id = o.run_id
               WHERE o.kind = 'continue' AND p.campaign_id = r.campaign_id AND p.ordinal BETWEEN m.first AND r.ordinal) AS continued,
       EXISTS (SELECT FROM attempts a WHERE a.run_id = r.id) AS attempted
FROM runs r
JOIN placed m ON m.id = r.id
WHERE r.ended_at IS NULL ORDER BY r.ordinal;

-- name: OpenRunNodes :many
SELECT n.run_id, n.role, n.node, n.committed_seq, n.delivered_at, n.ended, n.end_reason, (n.provenance IS NOT NULL)::boolean AS has_provenance,
       (SELECT count(*) FROM journal j WHERE j.run_id = n.run_id AND j.node = n.node AND j.type = 'refused') AS refused
FROM run_nodes n JOIN runs r ON r.id = n.run_id WHERE r.ended_at IS NULL ORDER BY r.ordinal, n.role;

-- name: OpenRunListeners :many
SELECT l.run_id, l.treatment, l.at_role FROM listeners l JOIN runs r ON r.id = l.run_id WHERE r.state = 'preparing';

-- name: UnfinishedParts :many
-- Nodes that have not ended their part in a run that is over for everybody
-- else. An agent that has been up since before the run knows it.
SELECT n.run_id, n.node, r.state, r.message, r.sheet_hash, (x.registered_at <= r.prepared_at)::boolean AS up_since
FROM run_nodes n JOIN runs r ON r.id = n.run_id JOIN nodes x ON x.name = n.node
WHERE r.ended_at > sqlc.arg(since)::timestamptz AND r.prepared_at IS NOT NULL AND n.ended IS NULL;

-- name: SetPreparing :execrows
UPDATE runs SET state = 'preparing', prepared_at = now() WHERE id = $1 AND state IN ('queued', 'waiting');

-- name: SetRunning :execrows
UPDATE runs SET state = 'running', started_at = now() WHERE id = $1 AND state = 'preparing';

-- name: SetCollecting :execrows
UPDATE runs SET state = 'collecting', collecting_at = now() WHERE id = $1 AND state IN ('preparing', 'running');

-- name: SetEnded :execrows
UPDATE runs SET state = sqlc.arg(state), message = sqlc.arg(message), ended_at = now() WHERE id = sqlc.arg(id) AND ended_at IS NULL;

-- name: AbortRun :execrows
UPDATE runs SET abort_reason = sqlc.arg(reason)::text, abort_fault = sqlc.arg(fault), abort_at = now()
WHERE id = sqlc.arg(id) AND ended_at IS NULL AND abort_reason IS NULL;

-- name: AbortCampaign :execrows
UPDATE runs SET abort_reason = sqlc.arg(reason)::text, abort_fault = false, abort_at = now()
WHERE campaign_id = sqlc.arg(campaign_id) AND ended_at IS NULL AND abort_reason IS NULL;

-- name: CampaignRuns :one
SELECT count(*) AS runs, count(*) FILTER (WHERE ended_at IS NULL) AS open FROM runs WHERE campaign_id = $1;

-- name: UnexplainedFailures :many
-- Attempts of a run that failed as one does whose listener is not in order, and that
-- nobody has marked or unmarked: once it is known whether another one of the trial
-- follows by itself. last: none does. The first condition on the verdict is that of an index.
SELECT a.trial, a.attempt, a.started_at, coalesce(a.duration_ns, 0)::bigint AS duration_ns, a.reason,
       (NOT EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))::boolean AS last,
       (SELECT count(*) FROM attempt_marks m WHERE m.run_id = a.run_id AND m.trial = a.trial AND m.given_by = sqlc.arg(self)::text) AS marks
FROM attempts a JOIN trials t ON t.run_id = a.run_id AND t.trial = a.trial
WHERE a.run_id = sqlc.arg(run_id) AND a.verdict <> 'succeeded' AND a.verdict IN ('failed', 'timed-out')
  AND a.reason IN ('connect-refused', 'connect-timeout', 'unreachable', 'reset', 'transfer-timeout', 'exited')
  AND (t.verdict IS NOT NULL OR EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))
  AND NOT EXISTS (SELECT FROM attempt_marks m WHERE m.run_id = a.run_id AND m.trial = a.trial AND m.attempt = a.attempt)
ORDER BY a.trial, a.attempt;

-- name: UnconfirmedSuccesses :many
-- Attempts of a run that succeeded for the client, without the server's record that all of
-- it arrived as it was sent. final: the server has ended its journal, or has a record of an
-- attempt that began after this one had ended. The rest is as in UnexplainedFailures.
SELECT a.trial, a.attempt, a.started_at, coalesce(a.duration_ns, 0)::bigint AS duration_ns,
       (EXISTS (SELECT FROM run_nodes n WHERE n.run_id = a.run_id AND n.role = 'server' AND n.ended IS NOT NULL)
        OR a.ended_seq < coalesce((SELECT max(l.started_seq) FROM attempts l JOIN flows f ON f.run_id = l.run_id AND f.trial = l.trial AND f.attempt = l.attempt
                                   JOIN receptions r ON r.run_id = f.run_id AND r.transfer = f.transfer WHERE l.run_id = sqlc.arg(run_id)), 0))::boolean AS final,
       (NOT EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))::boolean AS last,
       (SELECT count(*) FROM attempt_marks m WHERE m.run_id = a.run_id AND m.trial = a.trial AND m.given_by = sqlc.arg(self)::text) AS marks
FROM attempts a JOIN trials t ON t.run_id = a.run_id AND t.trial = a.trial
WHERE a.run_id = sqlc.arg(run_id) AND a.verdict = 'succeeded'
  AND EXISTS (SELECT FROM flows f WHERE f.run_id = a.run_id AND f.trial = a.trial AND f.attempt = a.attempt AND f.digest IS NOT NULL
              AND NOT EXISTS (SELECT FROM receptions r WHERE r.run_id = f.run_id AND r.transfer = f.transfer AND r.code = ''))
  AND (t.verdict IS NOT NULL OR EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))
  AND NOT EXISTS (SELECT FROM attempt_marks m WHERE m.run_id = a.run_id AND m.trial = a.trial AND m.attempt = a.attempt)
ORDER BY a.trial, a.attempt;

-- name: AttemptsDuring :many
-- Attempts of a run that overlap a time of the leading node's clock, count for or
-- against their protocols, and that nobody has marked or unmarked; the rest is as in
-- UnexplainedFailures.
SELECT a.trial, a.attempt, a.started_at, coalesce(a.duration_ns, 0)::bigint AS duration_ns, a.reason,
       (NOT EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))::boolean AS last,
       (SELECT count(*) FROM attempt_marks m WHERE m.run_id = a.run_id AND m.trial = a.trial AND m.given_by = sqlc.arg(self)::text) AS marks
FROM attempts a JOIN trials t ON t.run_id = a.run_id AND t.trial = a.trial
WHERE a.run_id = sqlc.arg(run_id) AND a.verdict IN ('succeeded', 'failed', 'timed-out')
  AND a.started_at <= sqlc.arg(until)::timestamptz
  AND a.started_at + coalesce(a.duration_ns, 0) / 1000 * interval '1 microsecond' >= sqlc.arg(since)::timestamptz
  AND (t.verdict IS NOT NULL OR EXISTS (SELECT FROM attempts b WHERE b.run_id = a.run_id AND b.trial = a.trial AND b.attempt > a.attempt))
  AND NOT EXISTS (SELECT FROM attempt_marks m WHERE m.run_id = a.run_id AND m.trial = a.trial AND m.attempt = a.attempt)
ORDER BY a.trial, a.attempt;

-- name: OpenAttempts :many
-- The attempts of open runs by what became of them: their verdict, "invalid" where a mark
-- says so, and "" while they run. trial and attempt: the last of each kind.
SELECT a.run_id, (CASE WHEN a.verdict IS NULL THEN '' WHEN i.trial IS NOT NULL THEN 'invalid' ELSE a.verdict END)::text AS verdict,
       count(*) AS n, max(a.trial)::integer AS trial, max(a.attempt)::integer AS attempt
FROM attempts a JOIN runs r ON r.id = a.run_id
LEFT JOIN (SELECT DISTINCT ON (m.run_id, m.trial, m.attempt) m.run_id, m.trial, m.attempt, m.invalid
           FROM attempt_marks m JOIN runs o ON o.id = m.run_id WHERE o.ended_at IS NULL ORDER BY m.run_id, m.trial, m.attempt, m.ordinal DESC) i
  ON i.run_id = a.run_id AND i.trial = a.trial AND i.attempt = a.attempt AND i.invalid
WHERE r.ended_at IS NULL GROUP BY 1, 2;

-- name: OpenJournals :many
SELECT n.run_id, n.node, n.committed_seq, n.delivered_at FROM run_nodes n JOIN runs r ON r.id = n.run_id
WHERE r.ended_at IS NULL AND n.delivered_at IS NOT NULL AND n.ended IS NULL ORDER BY r.ordinal, n.role;
