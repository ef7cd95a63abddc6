-- name: ReopenTrial :execrows
-- One more attempt of the trial follows.
UPDATE trials SET verdict = NULL, not_needed = false WHERE run_id = $1 AND trial = $2 AND verdict IS NOT NULL;

-- name: LockRunNode :one
-- Holds the node's part in the run until the transaction ends, so that deliveries of one journal follow one another.
SELECT n.role, n.committed_seq, (n.ended IS NOT NULL)::boolean AS ended, n.journal_bytes, n.late_bytes, r.trials, r.sheet_hash FROM run_nodes n JOIN runs r ON r.id = n.run_id
WHERE n.run_id = $1 AND n.node = $2 FOR UPDATE OF n;

-- name: JournalDigests :many
SELECT seq, digest FROM journal
WHERE run_id = sqlc.arg(run_id) AND node = sqlc.arg(node) AND seq BETWEEN sqlc.arg(first) AND sqlc.arg(last) ORDER BY seq;

-- name: AdvanceCommitted :exec
-- With the pages of the records as they were delivered.
WITH kept AS (
    INSERT INTO journal_pages (run_id, node, first_seq, last_seq, samples, content)
    SELECT sqlc.arg(run_id)::text, sqlc.arg(node)::text, unnest(sqlc.arg(firsts)::bigint[]), unnest(sqlc.arg(lasts)::bigint[]), unnest(sqlc.arg(samples)::boolean[]), unnest(sqlc.arg(contents)::bytea[])
)
UPDATE run_nodes n SET committed_seq = sqlc.arg(committed_seq), delivered_at = now(), journal_bytes = n.journal_bytes + sqlc.arg(bytes),
    late_records = n.late_records + sqlc.arg(late_records), late_bytes = n.late_bytes + sqlc.arg(late_bytes)
WHERE n.run_id = sqlc.arg(run_id) AND n.node = sqlc.arg(node);

-- name: EndPart :exec
UPDATE run_nodes SET ended = sqlc.arg(ended)::text, end_reason = sqlc.arg(end_reason) WHERE run_id = sqlc.arg(run_id) AND node = sqlc.arg(node);

-- name: SetProvenance :exec
UPDATE run_nodes SET provenance = $3 WHERE run_id = $1 AND node = $2;

-- name: UpsertListener :exec
INSERT INTO listeners (run_id, node, treatment, at_role, ready, port, info, code, message, restarts, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (run_id, node, treatment, at_role) DO UPDATE SET ready = excluded.ready, port = excluded.port, info = excluded.info,
    code = excluded.code, message = excluded.message, restarts = excluded.restarts, at = excluded.at;

-- name: InsertAttempt :exec
INSERT INTO attempts (run_id, trial, attempt, started_seq, started_at) VALUES ($1, $2, $3, $4, $5);

-- name: InsertFlow :exec
INSERT INTO flows (run_id, trial, attempt, flow, transfer) VALUES ($1, $2, $3, $4, $5);

-- name: ConnectFlow :execrows
UPDATE flows SET connect_ns = $5 WHERE run_id = $1 AND trial = $2 AND attempt = $3 AND flow = $4;

-- name: EndFlow :execrows
UPDATE flows SET verdict = sqlc.arg(verdict)::text, reason = sqlc.arg(reason), message = sqlc.arg(message),
    connect_ns = coalesce(sqlc.narg(connect_ns), connect_ns), size_bytes = sqlc.narg(size_bytes), elapsed_ns = sqlc.narg(elapsed_ns),
    digest = sqlc.narg(digest), last_sample = sqlc.narg(last_sample), info = sqlc.narg(info)
WHERE run_id = sqlc.arg(run_id) AND trial = sqlc.arg(trial) AND attempt = sqlc.arg(attempt) AND flow = sqlc.arg(flow);

-- name: EndAttempt :execrows
UPDATE attempts SET ended_seq = sqlc.arg(ended_seq)::bigint, ended_at = sqlc.arg(ended_at)::timestamptz, verdict = sqlc.arg(verdict)::text, reason = sqlc.arg(reason),
    message = sqlc.arg(message), duration_ns = sqlc.arg(duration_ns)::bigint, dead_ns = sqlc.arg(dead_ns)::bigint, radio = sqlc.narg(radio), log = sqlc.arg(log), host = sqlc.narg(host)
WHERE run_id = sqlc.arg(run_id) AND trial = sqlc.arg(trial) AND attempt = sqlc.arg(attempt) AND ended_seq IS NULL;

-- name: EndTrial :execrows
UPDATE trials SET verdict = sqlc.arg(verdict)::text, not_needed = sqlc.arg(not_needed) WHERE run_id = sqlc.arg(run_id) AND trial = sqlc.arg(trial) AND verdict IS NULL;

-- name: InsertReception :exec
INSERT INTO receptions (run_id, node, seq, treatment, transfer, at, size_bytes, elapsed_ns, digest, code, message, packets_ns)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: NodeIsVirtual :one
SELECT virtual FROM nodes WHERE name = $1;

-- name: AttemptsOfTransfers :many
SELECT DISTINCT trial, attempt FROM flows WHERE run_id = sqlc.arg(run_id) AND transfer = ANY (sqlc.arg(transfers)::text[]) ORDER BY trial, attempt;

-- name: StatedPart :one
-- What a node's statement on its journal of a run is held against.
SELECT n.role, (n.ended IS NOT NULL)::boolean AS ended, r.sheet_hash, n.statement FROM run_nodes n JOIN runs r ON r.id = n.run_id
WHERE n.run_id = $1 AND n.node = $2;

-- name: StoreStatement :execrows
UPDATE run_nodes SET statement = sqlc.arg(statement)::bytea, statement_signature = sqlc.arg(signature)::text, statement_certificate = sqlc.arg(certificate)::bytea, unsigned = ''
WHERE run_id = sqlc.arg(run_id) AND node = sqlc.arg(node) AND statement IS NULL;

-- name: RefuseStatement :exec
UPDATE run_nodes SET unsigned = sqlc.arg(reason) WHERE run_id = sqlc.arg(run_id) AND node = sqlc.arg(node);
