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

-- name: InsertChangeRequest :exec
INSERT INTO change_requests (id, hash, action, protocol, digest, reason, key_id, requested_by, requested_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: ChangeRequestForUpdate :one
SELECT * FROM change_requests WHERE id = $1 FOR UPDATE;

-- name: DecideChangeRequest :exec
UPDATE change_requests SET decided_by = $2, decided_at = $3, confirmed = $4 WHERE id = $1;

-- name: ChangeRequests :many
-- Those that can be decided first.
SELECT * FROM change_requests ORDER BY (decided_at IS NULL AND expires_at > sqlc.arg(now)) DESC, requested_at DESC, id LIMIT sqlc.arg(most);
