-- name: CampaignPage :many
-- The newest campaigns, those older than one of them, or those of the list.
SELECT id, name, plan, created_at, (position('published:'::bytea IN plan_text) > 0)::boolean AS published FROM campaigns c
WHERE CASE WHEN cardinality(sqlc.arg(ids)::text[]) > 0 THEN c.id = ANY (sqlc.arg(ids)::text[])
      ELSE sqlc.arg(before)::text = '' OR c.ordinal < (SELECT b.ordinal FROM campaigns b WHERE b.id = sqlc.arg(before)::text) END
ORDER BY c.ordinal DESC LIMIT sqlc.arg(count);

-- name: TrialCounts :many
-- How far runs have come; in a completed one every trial has ended.
SELECT r.id AS run_id,
       (CASE WHEN r.state = 'completed' THEN r.trials ELSE (SELECT count(t.verdict) FROM trials t WHERE t.run_id = r.id) END)::integer AS ended,
       (SELECT count(*) FROM trials t WHERE t.run_id = r.id AND t.not_needed)::integer AS not_needed,
       (SELECT count(*) FROM attempts a WHERE a.run_id = r.id AND a.verdict <> 'succeeded')::integer AS attempts_failed
FROM runs r WHERE r.id = ANY (sqlc.arg(runs)::text[]);

-- name: SeriesOfAttempt :many
-- Which series of samples there are of an attempt. Days without samples of the
-- run are passed over, which they are not where an index gives the order: hence
-- the OFFSET.
SELECT DISTINCT flow, side FROM (
  SELECT s.flow, s.side FROM samples s WHERE s.run_id = $1 AND s.trial = $2 AND s.attempt = $3
    AND s.at >= (SELECT p.first_at FROM sample_spans p WHERE p.run_id = $1) AND s.at <= (SELECT p.last_at FROM sample_spans p WHERE p.run_id = $1)
  OFFSET 0) one
ORDER BY flow, side;

-- name: ChannelsOfRun :many
-- How the channels of emulated radios changed during a run's attempts, of so many trials from one on.
SELECT trial, attempt, (radio -> 'channels')::jsonb AS channels FROM attempts
WHERE run_id = sqlc.arg(run_id) AND trial >= sqlc.arg(first)::integer AND trial < sqlc.arg(first)::integer + sqlc.arg(trials)::integer AND jsonb_typeof(radio -> 'channels') = 'array'
ORDER BY trial, attempt;
