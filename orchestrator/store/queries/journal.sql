-- name: InsertJournal :copyfrom
INSERT INTO journal (run_id, node, seq, type, at, body, digest) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: InsertClockOffset :exec
INSERT INTO clock_offsets (run_id, node, seq, at, moment, offset_ns, error_ns, unknown) VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: SignedJournal :one
SELECT statement, coalesce(statement_signature, '')::text AS signature, statement_certificate, unsigned FROM run_nodes WHERE run_id = $1 AND node = $2;
