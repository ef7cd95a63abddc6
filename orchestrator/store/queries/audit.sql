-- name: LockAudit :exec
-- One transaction at a time continues the chain; the lock ends with it.
SELECT pg_advisory_xact_lock(hashtext('linktrial audit'), hashtext(current_schema()));

-- name: LastAudit :one
SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1;

-- name: InsertAudit :exec
INSERT INTO audit (id, at, user_name, via, address, action, detail, outcome, message, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: AuditAfter :many
-- Oldest first.
SELECT * FROM audit WHERE id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(most);

-- name: InsertAuditHead :exec
-- Where an entry has a head already, that one stays: it may be the proof that the entry
-- was another one.
INSERT INTO audit_heads (entry, hash, signed_at, key_id, signature) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (entry) DO NOTHING;

-- name: AuditHeads :many
-- Of the entries after one, up to another.
SELECT * FROM audit_heads WHERE entry > sqlc.arg(after) AND entry <= sqlc.arg(until) ORDER BY entry;
