-- name: CompletedRunsLike :many
-- The newest completed runs of any of these radios, topologies and sizes: until they have so
-- many trials.
SELECT id, campaign_id FROM (
    SELECT id, campaign_id, ordinal, sum(trials) OVER (ORDER BY ordinal DESC) - trials AS trials_of_newer FROM runs
    WHERE state = 'completed' AND radio = ANY (sqlc.arg(radios)::text[]) AND topology = ANY (sqlc.arg(topologies)::text[])
      AND size_bytes = ANY (sqlc.arg(sizes_bytes)::bigint[])) newest
WHERE trials_of_newer < sqlc.arg(most_trials)::bigint ORDER BY ordinal DESC;
