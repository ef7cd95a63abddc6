-- name: WindowCandidates :many
-- Attempts of several flows without a common window whose samples are there.
SELECT a.run_id, a.trial, a.attempt, r.sheet_hash FROM attempts a JOIN runs r ON r.id = a.run_id
WHERE a.verdict = 'succeeded' AND a.common_window IS NULL
  AND (SELECT count(*) FROM flows f WHERE f.run_id = a.run_id AND f.trial = a.trial AND f.attempt = a.attempt) > 1
  AND NOT EXISTS (SELECT FROM sample_spans p WHERE p.run_id = a.run_id AND p.dropped_at IS NOT NULL)
ORDER BY a.run_id, a.trial, a.attempt;

-- name: WindowFlows :many
-- The flows of an attempt that succeeded and has no common window, with the
-- server's last result of each, and what the emulated radios counted.
SELECT f.flow, r.at, r.size_bytes, r.elapsed_ns, (a.radio -> 'traffic')::jsonb AS traffic
FROM attempts a
JOIN flows f ON f.run_id = a.run_id AND f.trial = a.trial AND f.attempt = a.attempt
JOIN receptions r ON r.run_id = f.run_id AND r.transfer = f.transfer AND r.digest IS NOT NULL
WHERE a.run_id = sqlc.arg(run_id) AND a.trial = sqlc.arg(trial) AND a.attempt = sqlc.arg(attempt) AND a.verdict = 'succeeded' AND a.common_window IS NULL
ORDER BY f.flow, r.seq;

-- name: WindowSamples :many
-- The server's samples of an attempt. Days without samples of the run are passed
-- over, which they are not where an index gives the order: hence the sum.
SELECT s.flow, s.at, s.elapsed_ns, s.sent_bytes FROM samples s
WHERE s.run_id = $1 AND s.trial = $2 AND s.attempt = $3 AND s.side = 'server'
  AND s.at >= (SELECT p.first_at FROM sample_spans p WHERE p.run_id = $1) AND s.at <= (SELECT p.last_at FROM sample_spans p WHERE p.run_id = $1)
ORDER BY s.flow, s.elapsed_ns + 0;

-- name: SetCommonWindow :exec
UPDATE attempts SET common_window = sqlc.arg(common_window)::jsonb
WHERE run_id = sqlc.arg(run_id) AND trial = sqlc.arg(trial) AND attempt = sqlc.arg(attempt) AND common_window IS NULL;
