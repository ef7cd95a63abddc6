-- name: InvalidAttempts :many
-- The attempts of a run whose values must not count.
SELECT * FROM invalid_attempts WHERE run_id = $1;
