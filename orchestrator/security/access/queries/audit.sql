-- name: Audit :many
SELECT * FROM audit
WHERE (sqlc.arg(before)::bigint = 0 OR id < sqlc.arg(before)::bigint)
  AND (sqlc.narg(since)::timestamptz IS NULL OR at >= sqlc.narg(since)::timestamptz)
  AND (sqlc.arg(user_name)::text = '' OR user_name = sqlc.arg(user_name)::text)
  AND (sqlc.arg(action)::text = '' OR position(lower(sqlc.arg(action)::text) IN lower(action)) > 0)
  AND (sqlc.arg(outcome)::text = '' OR outcome = sqlc.arg(outcome)::text)
ORDER BY id DESC LIMIT sqlc.arg(most);
