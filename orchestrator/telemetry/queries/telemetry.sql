-- name: TelemetryOf :many
-- Readings of a run by the nodes' clocks, in order of series and time; before those of a source
-- when it could not be read, without a value.
SELECT t.node, n.role, t.source, t.kind, t.name, t.unit, t.counter, t.at, t.value
FROM telemetry t JOIN run_nodes n ON n.run_id = t.run_id AND n.node = t.node
WHERE t.run_id = @run_id AND t.at BETWEEN @since AND @until
ORDER BY t.node, t.source, t.name, t.at, t.seq;

-- name: RunLeader :one
SELECT node FROM run_nodes WHERE run_id = @run_id AND role = 'client';

-- name: TelemetryOfNode :many
-- All that the sources of one node said, and why they said nothing.
SELECT * FROM telemetry WHERE run_id = @run_id AND node = @node ORDER BY at, seq, name;

-- name: FirstPositions :many
-- Where the nodes were when their part in the run began.
SELECT DISTINCT ON (node, source, name) node, source, name, value::double precision AS value FROM telemetry
WHERE run_id = $1 AND kind = ANY (sqlc.arg(kinds)::text[]) AND name IN ('latitude', 'longitude') AND value IS NOT NULL ORDER BY node, source, name, seq;
