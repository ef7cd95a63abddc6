-- name: LatestClockOffsets :many
-- By the order of runs and records: times of nodes whose clocks were wrong are in no order.
SELECT DISTINCT ON (c.node) c.node, c.offset_ns FROM clock_offsets c JOIN runs r ON r.id = c.run_id
WHERE c.unknown = '' ORDER BY c.node, r.ordinal DESC, c.seq DESC;

-- name: ContactLosses :many
SELECT * FROM contact_losses WHERE run_id = $1 ORDER BY lost_at, node;
