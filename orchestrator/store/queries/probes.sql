-- name: Probes :many
SELECT * FROM probes WHERE run_id = ANY (sqlc.arg(runs)::text[]) ORDER BY run_id, trial, attempt, probe;

-- name: ProbeReceptions :many
SELECT * FROM probe_receptions WHERE run_id = ANY (sqlc.arg(runs)::text[]) ORDER BY run_id, seq;

-- name: ProbeClocks :many
-- The clocks of the nodes that send and receive probes, in the order in which they were compared.
SELECT c.run_id, n.role, c.moment, c.offset_ns, c.error_ns, c.unknown
FROM clock_offsets c JOIN run_nodes n ON n.run_id = c.run_id AND n.node = c.node
WHERE c.run_id = ANY (sqlc.arg(runs)::text[]) AND n.role IN ('client', 'server') ORDER BY c.run_id, c.node, c.seq;
