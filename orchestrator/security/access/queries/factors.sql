-- name: SecondFactor :one
SELECT * FROM second_factors WHERE user_name = $1;

-- name: SecondFactors :many
SELECT * FROM second_factors ORDER BY user_name;

-- name: ProposeSecondFactor :execrows
-- Replaces one that is not confirmed.
INSERT INTO second_factors (user_name, sealed, created_at) VALUES ($1, $2, $3)
ON CONFLICT (user_name) DO UPDATE SET sealed = EXCLUDED.sealed, created_at = EXCLUDED.created_at WHERE second_factors.confirmed_at IS NULL;

-- name: ConfirmSecondFactor :execrows
UPDATE second_factors SET confirmed_at = $3, last_step = $4 WHERE user_name = $1 AND sealed = $2 AND confirmed_at IS NULL;

-- name: UseCodeOfStep :execrows
-- Of two calls with one code, one changes the row.
UPDATE second_factors SET last_step = $2 WHERE user_name = $1 AND confirmed_at IS NOT NULL AND last_step < $2;

-- name: DeleteSecondFactor :execrows
DELETE FROM second_factors WHERE user_name = $1;

-- name: InsertRecoveryCode :exec
INSERT INTO recovery_codes (user_name, hash) VALUES ($1, $2);

-- name: DeleteRecoveryCodes :exec
DELETE FROM recovery_codes WHERE user_name = $1;

-- name: UseRecoveryCode :execrows
UPDATE recovery_codes SET used_at = $3 WHERE user_name = $1 AND hash = $2 AND used_at IS NULL;

-- name: RecoveryCodesLeft :one
SELECT count(*)::integer AS codes FROM recovery_codes WHERE user_name = $1 AND used_at IS NULL;
