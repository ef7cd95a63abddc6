-- Channels and their deliveries.

-- name: Channels :many
SELECT c.*, d.waiting, d.next_try FROM notification_channels c
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting, coalesce(min(d.next_try), 'epoch')::timestamptz AS next_try FROM notification_deliveries d
    WHERE d.channel = c.name AND d.delivered_at IS NULL AND d.given_up_at IS NULL) d
ORDER BY c.name;

-- name: Channel :one
SELECT * FROM notification_channels WHERE name = $1;

-- name: ChannelForUpdate :one
SELECT * FROM notification_channels WHERE name = $1 FOR UPDATE;

-- name: CountChannels :one
SELECT count(*) FROM notification_channels;

-- name: InsertChannel :execrows
INSERT INTO notification_channels (name, identity, version, off, kinds, way, settings, sealed)
VALUES (sqlc.arg(name), sqlc.arg(identity), 1, sqlc.arg(off), sqlc.arg(kinds), sqlc.arg(way), sqlc.arg(settings), sqlc.narg(sealed))
ON CONFLICT (name) DO NOTHING;

-- name: UpdateChannel :exec
UPDATE notification_channels SET version = version + 1, off = sqlc.arg(off), kinds = sqlc.arg(kinds), way = sqlc.arg(way), settings = sqlc.arg(settings), sealed = sqlc.narg(sealed)
WHERE name = sqlc.arg(name);

-- name: DeleteChannel :execrows
DELETE FROM notification_channels WHERE name = $1;

-- name: DropWaiting :exec
-- What waits for a channel that is turned off.
DELETE FROM notification_deliveries WHERE channel = $1 AND delivered_at IS NULL AND given_up_at IS NULL;

-- name: Outbox :many
-- What is to be delivered by a channel, oldest first.
SELECT n.*, d.tries, d.next_try, d.created_at FROM notification_deliveries d JOIN notifications n ON n.id = d.notification_id
WHERE d.channel = sqlc.arg(channel) AND d.delivered_at IS NULL AND d.given_up_at IS NULL
ORDER BY d.notification_id LIMIT sqlc.arg(most);

-- name: Delivered :exec
WITH done AS (
    UPDATE notification_deliveries SET delivered_at = sqlc.arg(now), error = '', tries = tries + 1
    WHERE channel = sqlc.arg(channel) AND notification_id = ANY (sqlc.arg(ids)::bigint[]) AND delivered_at IS NULL AND given_up_at IS NULL RETURNING 1)
UPDATE notification_channels SET delivered = delivered + (SELECT count(*) FROM done), delivered_at = sqlc.arg(now), error = '' WHERE name = sqlc.arg(channel);

-- name: Failed :exec
WITH done AS (
    UPDATE notification_deliveries SET error = sqlc.arg(error), tries = tries + 1, next_try = sqlc.arg(next_try),
           given_up_at = CASE WHEN sqlc.arg(give_up)::boolean THEN sqlc.arg(now)::timestamptz END
    WHERE channel = sqlc.arg(channel) AND notification_id = ANY (sqlc.arg(ids)::bigint[]) AND delivered_at IS NULL AND given_up_at IS NULL RETURNING given_up_at)
UPDATE notification_channels SET given_up = given_up + (SELECT count(given_up_at) FROM done), failed_at = sqlc.arg(now)::timestamptz, error = sqlc.arg(error) WHERE name = sqlc.arg(channel);
