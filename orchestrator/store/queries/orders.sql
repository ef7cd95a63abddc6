-- Orders of people to runs, and their marks on attempts.

-- name: InvalidAttempts :many
-- The attempts of a run whose figures must not count.
SELECT * FROM invalid_attempts WHERE run_id = $1;

-- name: InsertMark :exec
INSERT INTO attempt_marks (id, run_id, trial, attempt, invalid, reason, given_by) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: Marks :many
SELECT * FROM attempt_marks WHERE run_id = $1 ORDER BY ordinal;

-- name: InsertOrder :exec
INSERT INTO run_orders (id, run_id, kind, trial, reason, given_by) VALUES ($1, $2, $3, $4, $5, $6);

-- name: OrderStates :many
SELECT * FROM order_states WHERE run_id = $1 ORDER BY ordinal;

-- name: OpenRunOrders :many
-- Orders that leading agents of open runs must know, oldest first.
SELECT o.run_id, o.id, o.kind, o.trial, o.given_by FROM run_orders o JOIN runs r ON r.id = o.run_id
WHERE r.ended_at IS NULL AND o.kind IN ('pause', 'resume', 'skip', 'repeat') ORDER BY o.ordinal;

-- name: RunForOrder :one
-- Holds the run as it is until the transaction ends, so that an order and the run's next step follow one another.
SELECT id, campaign_id, state, trials, abort_reason, ended_at, confirm_move FROM runs WHERE id = $1 FOR UPDATE;

-- name: TrialVerdict :one
SELECT verdict FROM trials WHERE run_id = $1 AND trial = $2;

-- name: AttemptVerdict :one
SELECT verdict FROM attempts WHERE run_id = $1 AND trial = $2 AND attempt = $3;

-- name: SetWaiting :execrows
UPDATE runs SET state = 'waiting' WHERE id = $1 AND state = 'queued';

-- name: ConfirmMove :exec
UPDATE runs SET confirm_move = true WHERE id = $1;

-- name: ReopenTrial :execrows
-- One more attempt of the trial follows.
UPDATE trials SET verdict = NULL WHERE run_id = $1 AND trial = $2 AND verdict IS NOT NULL;
