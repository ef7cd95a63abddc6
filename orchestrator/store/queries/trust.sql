-- Signatures of run sheets, and approvals of drivers.

-- name: InsertRunSignature :exec
INSERT INTO run_signatures (run_id, key_id, signature) VALUES ($1, $2, $3);

-- name: RunSignature :one
SELECT * FROM run_signatures WHERE run_id = $1;

-- name: InsertApproval :exec
INSERT INTO driver_approvals (protocol, digest, approved, reason, given_by) VALUES ($1, $2, $3, $4, $5);

-- name: Approvals :many
-- The digests that people accept now.
SELECT * FROM driver_approvals a
WHERE a.approved AND NOT EXISTS (SELECT 1 FROM driver_approvals b WHERE b.protocol = a.protocol AND b.digest = a.digest AND b.ordinal > a.ordinal)
ORDER BY a.protocol, a.ordinal;
