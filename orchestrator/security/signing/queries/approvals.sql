-- name: InsertApproval :exec
INSERT INTO driver_approvals (protocol, digest, approved, reason, given_by) VALUES ($1, $2, $3, $4, $5);

-- name: Approvals :many
-- The digests that people accept now.
SELECT * FROM driver_approvals a
WHERE a.approved AND NOT EXISTS (SELECT 1 FROM driver_approvals b WHERE b.protocol = a.protocol AND b.digest = a.digest AND b.ordinal > a.ordinal)
ORDER BY a.protocol, a.ordinal;
