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
    AND NOT EXISTS (SELECT FROM schedules s WHERE s.plan = p.name AND s.ended_at IS NULL);

-- name: InsertSchedule :exec
INSERT INTO schedules (id, plan, plan_text, plan_hash, start_at, estimated_seconds, name, given_by, given_at, message)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: Schedules :many
-- What is to come first, then what has ended, newest first.
SELECT id, plan, start_at, estimated_seconds, name, given_by, state, message, campaign_id FROM schedules
ORDER BY ended_at IS NOT NULL, CASE WHEN ended_at IS NULL THEN start_at END, ended_at DESC, id LIMIT $1;

-- name: Schedule :one
SELECT id, plan, start_at, estimated_seconds, name, given_by, state, message, campaign_id FROM schedules WHERE id = $1;

-- name: OpenSchedules :many
SELECT * FROM schedules WHERE ended_at IS NULL ORDER BY start_at, id;

-- name: ClaimSchedule :execrows
UPDATE schedules SET state = 'starting', claimed_at = now() WHERE id = $1 AND state = 'waiting';

-- name: EndSchedule :execrows
UPDATE schedules SET state = sqlc.arg(state), message = sqlc.arg(message), campaign_id = sqlc.narg(campaign_id), ended_at = sqlc.arg(ended_at)
WHERE id = sqlc.arg(id) AND state = sqlc.arg(from_state);

-- name: CampaignStartedSince :many
SELECT id FROM campaigns WHERE plan_hash = $1 AND plan_file = $2 AND created_at >= $3 ORDER BY ordinal LIMIT 1;

-- name: ConformanceResults :many
SELECT * FROM conformance ORDER BY driver;

-- name: KeepConformance :exec
INSERT INTO conformance (driver, version, sha256, checked_at, checks) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (driver) DO UPDATE SET version = excluded.version, sha256 = excluded.sha256, checked_at = excluded.checked_at, checks = excluded.checks;
