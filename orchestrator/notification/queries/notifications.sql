-- Notifications, and what is to be delivered of them.

-- name: InsertNotification :one
-- Stores a notification with what is to be delivered of it; no row: it was stored before.
WITH new AS (
    INSERT INTO notifications (event, kind, at, title, body, campaign_id, run_id, node, urgent, path)
    VALUES (sqlc.arg(event), sqlc.arg(kind), sqlc.arg(at), sqlc.arg(title), sqlc.arg(body), sqlc.arg(campaign_id), sqlc.arg(run_id), sqlc.arg(node), sqlc.arg(urgent), sqlc.arg(path))
    ON CONFLICT (event) DO NOTHING RETURNING id, kind),
deliveries AS (
    INSERT INTO notification_deliveries (channel, notification_id, created_at, next_try)
    SELECT c.name, new.id, sqlc.arg(now)::timestamptz, sqlc.arg(now)::timestamptz FROM new, notification_channels c
    WHERE NOT c.off AND (c.kinds = '{}' OR new.kind = ANY (c.kinds)))
SELECT id FROM new;

-- name: Notifications :many
-- Newest first.
SELECT * FROM notifications WHERE sqlc.arg(before)::bigint = 0 OR id < sqlc.arg(before)::bigint ORDER BY id DESC LIMIT sqlc.arg(most);

-- name: NotificationsAfter :many
-- Oldest first.
SELECT * FROM notifications WHERE id > sqlc.arg(after)::bigint ORDER BY id LIMIT sqlc.arg(most);

-- name: NewestNotification :one
SELECT coalesce(max(id), 0)::bigint FROM notifications;

-- name: RemoveOldNotifications :execrows
-- Removes those that are older, and of the rest all but the newest ones, as far as their events
-- are too old to be told once more.
DELETE FROM notifications n WHERE n.stored_at < sqlc.arg(older)::timestamptz
   OR n.stored_at < sqlc.arg(told)::timestamptz AND n.id <= (SELECT k.id FROM notifications k ORDER BY k.id DESC OFFSET sqlc.arg(most)::integer LIMIT 1);
