-- name: SavedPlans :many
SELECT * FROM saved_plans ORDER BY name;

-- name: SavedPlan :one
SELECT * FROM saved_plans WHERE name = $1;

-- name: InsertSavedPlan :execrows
INSERT INTO saved_plans (name, text, revision, changed_at) VALUES ($1, $2, 1, $3) ON CONFLICT (name) DO NOTHING;

-- name: UpdateSavedPlan :execrows
UPDATE saved_plans SET text = $2, revision = revision + 1, changed_at = $3 WHERE name = $1 AND revision = $4;

-- name: DeleteSavedPlan :execrows
DELETE FROM saved_plans p WHERE p.name = $1
    AND NOT EXISTS (SELECT FROM schedules s WHERE s.plan = p.name AND s.ended_at IS NULL)
    AND NOT EXISTS (SELECT FROM recurrences r WHERE r.plan = p.name AND r.state IN ('active', 'paused'));

-- name: InsertSchedule :exec
INSERT INTO schedules (id, plan, plan_text, plan_hash, start_at, estimated_seconds, name, given_by, given_at, message, patience_seconds)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: Schedules :many
-- What is to come first, then what has ended, newest first.
SELECT id, plan, start_at, estimated_seconds, name, given_by, state, message, campaign_id, patience_seconds, recurrence_id, number FROM schedules
ORDER BY ended_at IS NOT NULL, CASE WHEN ended_at IS NULL THEN start_at END, ended_at DESC, id LIMIT $1;

-- name: Schedule :one
SELECT id, plan, start_at, estimated_seconds, name, given_by, state, message, campaign_id, patience_seconds, recurrence_id, number FROM schedules WHERE id = $1;

-- name: OpenSchedules :many
SELECT * FROM schedules WHERE ended_at IS NULL ORDER BY start_at, id;

-- name: ClaimSchedule :execrows
UPDATE schedules SET state = 'starting', claimed_at = now() WHERE id = $1 AND state = 'waiting';

-- name: EndSchedule :execrows
UPDATE schedules SET state = sqlc.arg(state), message = sqlc.arg(message), campaign_id = sqlc.narg(campaign_id), ended_at = sqlc.arg(ended_at)
WHERE id = sqlc.arg(id) AND state = sqlc.arg(from_state);

-- name: PostponeSchedule :exec
-- What was claimed and could not start is tried again.
UPDATE schedules SET state = 'waiting', message = $2 WHERE id = $1 AND state = 'starting';

-- name: InsertRecurrence :exec
INSERT INTO recurrences (id, plan, plan_text, rule, estimated_seconds, name, given_by, given_at, entered_until, patience_seconds)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: Recurrences :many
-- Those that people have not removed, in the order in which they were made.
SELECT id, plan, rule, estimated_seconds, name, given_by, state, entered_until FROM recurrences
WHERE state <> 'removed' ORDER BY given_at, id;

-- name: Recurrence :one
SELECT id, plan, state FROM recurrences WHERE id = $1;

-- name: RecurrencesToEnter :many
-- Active ones of which no start waits.
SELECT r.*, COALESCE((SELECT max(s.number) FROM schedules s WHERE s.recurrence_id = r.id), 0)::integer AS entered FROM recurrences r
WHERE r.state = 'active' AND NOT EXISTS (SELECT FROM schedules s WHERE s.recurrence_id = r.id AND s.ended_at IS NULL)
ORDER BY r.given_at, r.id;

-- name: EnterStart :execrows
-- The next start by a rule, unless the rule was paused, removed or entered meanwhile.
WITH entered AS (
    UPDATE recurrences SET entered_until = sqlc.arg(start_at) WHERE recurrences.id = sqlc.arg(recurrence_id) AND recurrences.state = 'active' AND entered_until < sqlc.arg(start_at)
    RETURNING recurrences.id, recurrences.plan, recurrences.estimated_seconds, recurrences.given_by, recurrences.patience_seconds
)
INSERT INTO schedules (id, plan, plan_text, plan_hash, start_at, estimated_seconds, name, given_by, given_at, message, patience_seconds, recurrence_id, number)
SELECT sqlc.arg(id)::text, plan, sqlc.arg(plan_text)::bytea, encode(sha256(sqlc.arg(plan_text)::bytea), 'hex'), sqlc.arg(start_at), estimated_seconds,
    sqlc.arg(name)::text, given_by, sqlc.arg(given_at)::timestamptz, sqlc.arg(message)::text, patience_seconds, id, sqlc.arg(number)::integer
FROM entered;

-- name: SetRecurrence :execrows
-- Starts up to now that were not entered are not made up; one that has ended is not entered again.
UPDATE recurrences r SET state = sqlc.arg(state), entered_until = GREATEST(sqlc.arg(now)::timestamptz,
    (SELECT max(s.start_at) FROM schedules s WHERE s.recurrence_id = r.id AND s.ended_at IS NOT NULL))
WHERE r.id = sqlc.arg(id) AND r.state = ANY(sqlc.arg(from_states)::text[]);

-- name: DropWaitingStart :execrows
-- A start that was entered and has not come: its rule is paused or removed.
DELETE FROM schedules WHERE recurrence_id = $1 AND state = 'waiting';

-- name: LastStarts :many
-- The last starts by each rule that have ended, the newest first.
SELECT s.id, s.plan, s.start_at, s.estimated_seconds, s.name, s.given_by, s.state, s.message, s.campaign_id, s.patience_seconds, s.recurrence_id, s.number FROM recurrences r
CROSS JOIN LATERAL (
    SELECT * FROM schedules x WHERE x.recurrence_id = r.id AND x.ended_at IS NOT NULL ORDER BY x.number DESC LIMIT sqlc.arg(count)
) AS s
WHERE r.state <> 'removed' ORDER BY r.given_at, r.id, s.number DESC;

-- name: FormerStillOpen :many
-- Runs that earlier starts by the rule have begun and that have not ended.
SELECT r.id FROM runs r JOIN schedules s ON s.campaign_id = r.campaign_id
WHERE s.recurrence_id = $1 AND r.ended_at IS NULL ORDER BY r.ordinal LIMIT 1;

-- name: CampaignStartedSince :many
SELECT id FROM campaigns WHERE plan_hash = $1 AND plan_file = $2 AND created_at >= $3 ORDER BY ordinal LIMIT 1;
