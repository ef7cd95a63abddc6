-- name: RunsByState :many
SELECT state, count(*) AS n FROM runs GROUP BY state;

-- name: InsertRunSignature :exec
INSERT INTO run_signatures (run_id, key_id, signature) VALUES ($1, $2, $3);
