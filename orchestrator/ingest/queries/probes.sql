-- name: InsertProbe :exec
INSERT INTO probes (run_id, trial, attempt, probe, transfer) VALUES ($1, $2, $3, $4, $5);

-- name: ConnectProbe :execrows
UPDATE probes SET connect_ns = $5 WHERE run_id = $1 AND trial = $2 AND attempt = $3 AND probe = $4;

-- name: EndProbe :execrows
UPDATE probes SET verdict = sqlc.arg(verdict)::text, reason = sqlc.arg(reason), message = sqlc.arg(message),
    connect_ns = coalesce(sqlc.narg(connect_ns), connect_ns), elapsed_ns = sqlc.narg(elapsed_ns), metrics = sqlc.narg(metrics)
WHERE run_id = sqlc.arg(run_id) AND trial = sqlc.arg(trial) AND attempt = sqlc.arg(attempt) AND probe = sqlc.arg(probe);

-- name: InsertProbeReception :exec
INSERT INTO probe_receptions (run_id, node, seq, transfer, at, metrics) VALUES ($1, $2, $3, $4, $5, $6);
