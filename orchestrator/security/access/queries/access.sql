-- name: Users :many
SELECT u.name, u.role, u.disabled, u.created_at, u.last_login_at,
       (SELECT count(*) FROM sessions s WHERE s.user_name = u.name AND s.expires_at > sqlc.arg(now) AND s.used_at > sqlc.arg(idle_since))::integer AS sessions,
       (SELECT count(*) FROM api_tokens t WHERE t.user_name = u.name AND t.expires_at > sqlc.arg(now) AND t.revoked_at IS NULL)::integer AS tokens,
       EXISTS (SELECT 1 FROM second_factors f WHERE f.user_name = u.name AND f.confirmed_at IS NOT NULL) AS second_factor, u.password = '' AS by_provider
FROM users u ORDER BY u.name;

-- name: User :one
SELECT * FROM users WHERE name = $1;

-- name: UserForUpdate :one
SELECT * FROM users WHERE name = $1 FOR UPDATE;

-- name: LockUsers :exec
-- Whoever counts admins before changing one must not meet another who does.
LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE;

-- name: ActiveAdmins :one
SELECT count(*) FROM users WHERE role = 'admin' AND NOT disabled;

-- name: InsertUser :execrows
INSERT INTO users (name, role, password, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING;

-- name: SetUserRole :execrows
UPDATE users SET role = $2 WHERE name = $1;

-- name: SetUserPassword :execrows
UPDATE users SET password = $2 WHERE name = $1;

-- name: SetUserDisabled :execrows
UPDATE users SET disabled = $2 WHERE name = $1;

-- name: UserLoggedIn :exec
UPDATE users SET last_login_at = $2 WHERE name = $1;

-- name: InsertSession :exec
INSERT INTO sessions (hash, user_name, created_at, used_at, expires_at) VALUES ($1, $2, $3, $3, $4);

-- name: Session :one
SELECT s.user_name, s.used_at, s.expires_at, u.role, u.disabled,
       EXISTS (SELECT 1 FROM second_factors f WHERE f.user_name = u.name AND f.confirmed_at IS NOT NULL) AS second_factor, u.password = '' AS by_provider
FROM sessions s JOIN users u ON u.name = s.user_name WHERE s.hash = $1;

-- name: TouchSession :exec
UPDATE sessions SET used_at = $2 WHERE hash = $1;

-- name: DeleteSession :exec
DELETE FROM sessions WHERE hash = $1;

-- name: DeleteSessionsOf :exec
DELETE FROM sessions WHERE user_name = $1;

-- name: DeleteOldSessions :exec
DELETE FROM sessions WHERE expires_at <= sqlc.arg(now) OR used_at <= sqlc.arg(idle_since);

-- name: InsertToken :exec
INSERT INTO api_tokens (id, hash, user_name, name, role, of_login, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: TokenByHash :one
SELECT t.id, t.user_name, t.name, t.role, t.of_login, t.expires_at, t.used_at, t.revoked_at, u.role AS user_role, u.disabled,
       EXISTS (SELECT 1 FROM second_factors f WHERE f.user_name = u.name AND f.confirmed_at IS NOT NULL) AS second_factor, u.password = '' AS by_provider
FROM api_tokens t JOIN users u ON u.name = t.user_name WHERE t.hash = $1;

-- name: TouchToken :exec
UPDATE api_tokens SET used_at = $2 WHERE id = $1;

-- name: Tokens :many
-- Of one user, or of all where the name is empty.
SELECT id, user_name, name, role, of_login, created_at, expires_at, used_at, revoked_at FROM api_tokens
WHERE sqlc.arg(user_name)::text = '' OR user_name = sqlc.arg(user_name)::text ORDER BY created_at DESC, id;

-- name: TokensNamed :many
-- By identity, or by the name of one that is not revoked and of the user.
SELECT id, user_name, name, role, of_login, created_at, expires_at, used_at, revoked_at FROM api_tokens
WHERE id = sqlc.arg(name) OR (name = sqlc.arg(name) AND user_name = sqlc.arg(user_name) AND revoked_at IS NULL) ORDER BY id;

-- name: RevokeToken :execrows
UPDATE api_tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL;

-- name: RevokeTokensOf :exec
-- All of a user that work, but the one with the identity keep.
UPDATE api_tokens SET revoked_at = sqlc.arg(now) WHERE user_name = sqlc.arg(user_name) AND id <> sqlc.arg(keep)::text AND revoked_at IS NULL;

-- name: RevokeLoginsOf :exec
-- Tokens that logins of a user made, but the one with the identity keep.
UPDATE api_tokens SET revoked_at = sqlc.arg(now) WHERE user_name = sqlc.arg(user_name) AND of_login AND id <> sqlc.arg(keep)::text AND revoked_at IS NULL;

-- name: RevokeExpiredNamed :exec
-- Frees the name of a token that has expired.
UPDATE api_tokens SET revoked_at = sqlc.arg(now) WHERE user_name = sqlc.arg(user_name) AND name = sqlc.arg(name) AND revoked_at IS NULL AND expires_at <= sqlc.arg(now);
