-- Commands of people to runs, and their marks on attempts.

-- name: InsertMark :exec
INSERT INTO attempt_marks (id, run_id, trial, attempt, invalid, reason, given_by) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: InsertCommand :exec
INSERT INTO run_commands (id, run_id, kind, trial, reason, given_by) VALUES ($1, $2, $3, $4, $5, $6);

-- name: CommandStates :many
SELECT * FROM command_states WHERE run_id = $1 ORDER BY ordinal;

-- name: OpenRunCommands :many
-- Commands that leading agents of open runs must know, oldest first.
SELECT o.run_id, o.id, o.kind, o.trial, o.given_by FROM run_commands o JOIN runs r ON r.id = o.run_id
WHERE r.ended_at IS NULL AND o.kind = ANY (sqlc.arg(led)::text[]) ORDER BY o.ordinal;

-- name: RunForCommand :one
-- Holds the run as it is until the transaction ends, so that a command and the run's next step follow one another.
SELECT id, campaign_id, state, trials, abort_reason, ended_at, confirm_move FROM runs WHERE id = $1 FOR UPDATE;

-- name: TrialVerdict :one
SELECT verdict, not_needed FROM trials WHERE run_id = $1 AND trial = $2;

-- name: AttemptVerdict :one
SELECT verdict FROM attempts WHERE run_id = $1 AND trial = $2 AND attempt = $3;

-- name: SetWaiting :execrows
UPDATE runs SET state = 'waiting' WHERE id = $1 AND state = 'queued';

-- name: ConfirmMove :exec
UPDATE runs SET confirm_move = true WHERE id = $1;
