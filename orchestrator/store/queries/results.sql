-- name: Trials :many
SELECT * FROM trials WHERE run_id = $1 ORDER BY trial;

-- name: Attempts :many
-- The histories of the channels are most of a radio's report: only ChannelsOfRun reads them,
-- and only WindowFlows its traffic.
SELECT run_id, trial, attempt, started_seq, started_at, ended_seq, ended_at, verdict, reason, message, duration_ns, dead_ns,
       (CASE WHEN jsonb_typeof(radio) = 'object' THEN radio - '{channels,traffic}'::text[] ELSE radio END)::jsonb AS radio,
       log, ideal_ns, coded_bound_ns, common_window, undecided, control, host
FROM attempts WHERE run_id = $1 ORDER BY trial, attempt;

-- name: Flows :many
SELECT * FROM flows WHERE run_id = $1 ORDER BY trial, attempt, flow;

-- name: Receptions :many
SELECT * FROM receptions WHERE run_id = $1 AND transfer IS NOT NULL ORDER BY seq;

-- name: ClockOffsets :many
SELECT * FROM clock_offsets WHERE run_id = $1 ORDER BY node, seq;

-- name: Breaches :many
-- What drivers did wrong in a run, as far as it did not decide an attempt.
SELECT j.node, n.role, j.at, j.body FROM journal j JOIN run_nodes n ON n.run_id = j.run_id AND n.node = j.node
WHERE j.run_id = $1 AND j.type = 'driver-misbehaved' ORDER BY n.role, j.node, j.seq;

-- name: Looks :many
-- What a run's rule to stop by found.
SELECT j.seq, j.body FROM journal j JOIN run_nodes n ON n.run_id = j.run_id AND n.node = j.node
WHERE j.run_id = $1 AND j.type = 'look' AND n.role = 'client' ORDER BY j.seq;

-- name: RunHeads :many
-- Runs with all that does not grow with their trials, in the order of
-- campaigns' creation and of the plan.
SELECT r.id, r.campaign_id, c.plan, r.cell, r.state, r.message, r.sheet_hash, r.radio, r.topology, r.size_bytes, r.trials,
       r.treatment_labels, r.swept, r.created_at, r.started_at, r.ended_at,
       coalesce((SELECT n.provenance ->> 'place' FROM run_nodes n WHERE n.run_id = r.id AND n.role = 'client'), '')::text AS place,
       n.nodes, (r.ended_at IS NOT NULL AND n.open = 0)::boolean AS sealed, n.late AS late_records,
       -- Journals only grow, and marks too: what follows from them is the same as
       -- long as these are.
       n.committed, coalesce((SELECT max(m.ordinal) FROM attempt_marks m WHERE m.run_id = r.id), 0)::bigint AS marked,
       greatest(r.created_at, r.started_at, r.ended_at, n.delivered_at)::timestamptz AS active_at
FROM runs r
CROSS JOIN LATERAL (SELECT coalesce(array_agg(x.node ORDER BY x.role), '{}')::text[] AS nodes, coalesce(sum(x.committed_seq), 0)::bigint AS committed,
                           max(x.delivered_at) AS delivered_at,
                           count(*) FILTER (WHERE x.ended IS NULL) AS open, coalesce(sum(x.late_records), 0)::bigint AS late
                    FROM run_nodes x WHERE x.run_id = r.id) n
JOIN campaigns c ON c.id = r.campaign_id
WHERE r.campaign_id = ANY (sqlc.arg(campaigns)::text[]) OR r.id = ANY (sqlc.arg(runs)::text[])
ORDER BY c.ordinal, r.cell;

-- name: Sheets :many
SELECT sheet_hash, sheet FROM runs WHERE id = ANY (sqlc.arg(runs)::text[]);

-- name: MeasuredTrials :many
SELECT * FROM trials WHERE run_id = ANY (sqlc.arg(runs)::text[]) ORDER BY trial;

-- name: MeasuredAttempts :many
-- What values are made from: no logs, and of the radio's report only the bounds.
SELECT run_id, trial, attempt, started_at, verdict, reason, message, duration_ns, ideal_ns, coded_bound_ns, common_window, control, host
FROM attempts WHERE run_id = ANY (sqlc.arg(runs)::text[]) ORDER BY trial, attempt;

-- name: MeasuredFlows :many
-- Of the last state known of the protocol, only what tables show; -1: not known.
SELECT run_id, trial, attempt, flow, transfer, verdict, connect_ns, size_bytes, elapsed_ns, digest,
       coalesce((last_sample ->> 'retransmits')::bigint, -1)::bigint AS retransmits, coalesce((last_sample ->> 'timeouts')::bigint, -1)::bigint AS timeouts,
       coalesce((last_sample ->> 'transmitted_bytes')::bigint, -1)::bigint AS transmitted_bytes, coalesce((last_sample ->> 'retransmitted_bytes')::bigint, -1)::bigint AS retransmitted_bytes,
       coalesce((last_sample #>> '{rtt,mean_us}')::double precision, -1)::double precision AS rtt_mean_us, coalesce((last_sample #>> '{rtt,least_us}')::bigint, -1)::bigint AS rtt_least_us
FROM flows WHERE run_id = ANY (sqlc.arg(runs)::text[]) ORDER BY trial, attempt, flow;

-- name: MeasuredReceptions :many
SELECT * FROM receptions WHERE run_id = ANY (sqlc.arg(runs)::text[]) AND transfer IS NOT NULL ORDER BY seq;

-- name: MeasuredMarks :many
SELECT * FROM invalid_attempts WHERE run_id = ANY (sqlc.arg(runs)::text[]);

-- name: Trial :one
SELECT * FROM trials WHERE run_id = $1 AND trial = $2;

-- name: TrialsOfIteration :many
SELECT * FROM trials WHERE run_id = $1 AND iteration = $2 ORDER BY trial;

-- name: AttemptsOfTrials :many
SELECT * FROM attempts WHERE run_id = sqlc.arg(run_id) AND trial = ANY (sqlc.arg(trials)::integer[]) ORDER BY trial, attempt;

-- name: FlowsOfTrials :many
SELECT * FROM flows WHERE run_id = sqlc.arg(run_id) AND trial = ANY (sqlc.arg(trials)::integer[]) ORDER BY trial, attempt, flow;

-- name: ReceptionsOfTransfers :many
SELECT * FROM receptions WHERE run_id = sqlc.arg(run_id) AND transfer = ANY (sqlc.arg(transfers)::text[]) ORDER BY seq;

-- name: SeriesWindow :one
-- The samples of a series between two moments, with the one before and the one
-- after: lines are drawn to the edge.
WITH series AS MATERIALIZED (
  SELECT s.elapsed_ns FROM samples s
  WHERE s.run_id = sqlc.arg(run_id) AND s.trial = sqlc.arg(trial) AND s.attempt = sqlc.arg(attempt) AND s.flow = sqlc.arg(flow) AND s.side = sqlc.arg(side)
    AND s.at >= (SELECT p.first_at FROM sample_spans p WHERE p.run_id = sqlc.arg(run_id)) AND s.at <= (SELECT p.last_at FROM sample_spans p WHERE p.run_id = sqlc.arg(run_id)))
SELECT count(*) AS samples, coalesce(min(x.elapsed_ns), 0)::bigint AS first_ns, coalesce(max(x.elapsed_ns), 0)::bigint AS last_ns
FROM series x
WHERE x.elapsed_ns >= coalesce((SELECT max(b.elapsed_ns) FROM series b WHERE b.elapsed_ns < sqlc.arg(from_ns)::bigint), sqlc.arg(from_ns)::bigint)
  AND x.elapsed_ns <= coalesce((SELECT min(a.elapsed_ns) FROM series a WHERE a.elapsed_ns > sqlc.arg(to_ns)::bigint), sqlc.arg(to_ns)::bigint);

-- name: SheetHash :one
SELECT sheet_hash FROM runs WHERE id = $1;
