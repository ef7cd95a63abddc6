-- What the state of runs is made from, and its changes.

-- name: OpenRuns :many
-- A run waits for the move that began its topology in the campaign, whichever
-- run of that topology somebody released: the one that was to wait for it may
-- have been aborted.
SELECT r.id, r.campaign_id, r.state, r.trials, r.sheet_hash, r.abort_reason, r.abort_fault, r.abort_at, r.collecting_at, r.message,
       (m.first IS NOT NULL)::boolean AS confirm_move,
       EXISTS (SELECT FROM run_commands o JOIN runs p ON p.id = o.run_id
               WHERE o.kind = 'release' AND p.campaign_id = r.campaign_id AND p.ordinal BETWEEN m.first AND r.ordinal) AS released,
       EXISTS (SELECT FROM attempts a WHERE a.run_id = r.id) AS attempted
FROM runs r
CROSS JOIN LATERAL (SELECT max(p.ordinal) AS first FROM runs p WHERE p.campaign_id = r.campaign_id AND p.confirm_move AND p.ordinal <= r.ordinal) m
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

-- name: RunNodes :many
SELECT run_id, role, node, committed_seq, delivered_at, ended, end_reason, provenance FROM run_nodes WHERE run_id = $1 ORDER BY role;

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
