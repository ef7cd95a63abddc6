-- name: InsertPreflight :exec
INSERT INTO preflights (id, topology, radio, nodes, plan, started_at) VALUES ($1, $2, $3, $4, $5, $6);

-- name: EndPreflight :exec
UPDATE preflights SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL;

-- name: OpenPreflights :many
SELECT * FROM preflights WHERE ended_at IS NULL ORDER BY ordinal;

-- name: Preflight :one
SELECT * FROM preflights WHERE id = $1;

-- name: NewestPreflight :one
SELECT * FROM preflights ORDER BY ordinal DESC LIMIT 1;

-- name: PreflightChecks :many
SELECT * FROM preflight_checks WHERE preflight_id = $1 ORDER BY ordinal;

-- name: InsertPreflightChecks :copyfrom
INSERT INTO preflight_checks (preflight_id, ordinal, node, peer, kind, state, found, expected, meaning, remedy)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: InsertPreflightTreatments :copyfrom
INSERT INTO preflight_treatments (preflight_id, fingerprint, works) VALUES ($1, $2, $3);

-- name: NewestPreflightTreatments :many
-- What the newest preflight that has ended since a moment found, of each of these treatments.
SELECT DISTINCT ON (t.fingerprint) t.fingerprint, t.works FROM preflight_treatments t JOIN preflights p ON p.id = t.preflight_id
WHERE t.fingerprint = ANY (sqlc.arg(fingerprints)::text[]) AND p.ended_at >= sqlc.arg(since)::timestamptz
ORDER BY t.fingerprint, p.ordinal DESC;

-- name: Links :many
SELECT * FROM links ORDER BY from_node, to_node, network;

-- name: KeepLink :exec
INSERT INTO links (from_node, to_node, network, reachable, rtt_ns, loss, probes, probed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (from_node, to_node, network) DO UPDATE SET reachable = excluded.reachable, rtt_ns = excluded.rtt_ns,
    loss = excluded.loss, probes = excluded.probes, probed_at = excluded.probed_at;

-- name: DropOldPreflights :execrows
-- Drops those that have ended and are, for each of their nodes, not among the newest of the same topology.
DELETE FROM preflights WHERE ended_at IS NOT NULL AND id IN (
    SELECT numbered.id FROM (
        SELECT p.id, row_number() OVER (PARTITION BY p.topology, n.node ORDER BY p.ordinal DESC) AS place
        FROM preflights p LEFT JOIN LATERAL unnest(p.nodes) AS n (node) ON true) AS numbered
    GROUP BY numbered.id HAVING min(numbered.place) > sqlc.arg(newest)::bigint);
