-- name: AddNodeToken :exec
INSERT INTO node_tokens (hash, node, created_at, created_by, expires_at) VALUES ($1, $2, $3, $4, $5);

-- name: LockNodeToken :one
SELECT * FROM node_tokens WHERE hash = $1 FOR UPDATE;

-- name: UseNodeToken :exec
UPDATE node_tokens SET used_at = $2, used_from = $3 WHERE hash = $1;

-- name: WithdrawNodeTokens :execrows
UPDATE node_tokens SET withdrawn_at = sqlc.arg(at)::timestamptz
WHERE node = $1 AND used_at IS NULL AND withdrawn_at IS NULL AND expires_at > sqlc.arg(at)::timestamptz;

-- name: OpenNodeTokens :many
SELECT * FROM node_tokens WHERE used_at IS NULL AND withdrawn_at IS NULL AND expires_at > sqlc.arg(at)::timestamptz ORDER BY node, expires_at;

-- name: AddNodeCertificate :exec
INSERT INTO node_certificates (serial, node, der, key_hash, token_hash, issued_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: CertificateOfToken :one
SELECT * FROM node_certificates WHERE token_hash = $1;

-- name: RevokeNodeCertificates :many
UPDATE node_certificates SET revoked_at = sqlc.arg(at)::timestamptz, revoked_by = sqlc.arg(revoked_by), reason = sqlc.arg(reason)
WHERE node = sqlc.arg(node) AND revoked_at IS NULL AND expires_at > sqlc.arg(at)::timestamptz
RETURNING serial;

-- name: ValidNodeCertificates :many
SELECT * FROM node_certificates WHERE expires_at > sqlc.arg(at)::timestamptz;

-- name: NewestNodeCertificates :many
SELECT DISTINCT ON (node) * FROM node_certificates ORDER BY node, issued_at DESC;
