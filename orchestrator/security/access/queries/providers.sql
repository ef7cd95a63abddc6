-- name: ProviderAccount :one
SELECT user_name FROM provider_accounts WHERE issuer = $1 AND subject = $2;

-- name: InsertProviderAccount :exec
INSERT INTO provider_accounts (user_name, issuer, subject) VALUES ($1, $2, $3);
