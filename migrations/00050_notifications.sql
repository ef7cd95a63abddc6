-- +goose Up

-- What there was to tell people (docs/notifications.md). Each is stored once: event is what it
-- is of, as kind/run/state, and unique also over restarts of the orchestrator. Rows are never
-- changed; those that are old are removed.
CREATE TABLE notifications (
    id          bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    event       text NOT NULL UNIQUE CHECK (event <> '' AND char_length(event) <= 400),
    kind        text NOT NULL CHECK (kind ~ '^[a-z][a-z-]{0,39}$'),
    at          timestamptz NOT NULL, -- of the event, by the orchestrator's clock
    title       text NOT NULL CHECK (char_length(title) BETWEEN 1 AND 300 AND title !~ '[[:cntrl:]]'),
    body        text NOT NULL CHECK (char_length(body) <= 4000),
    -- Not foreign keys: what was told stays true.
    campaign_id text NOT NULL CHECK (char_length(campaign_id) <= 64), -- empty: of none
    run_id      text NOT NULL CHECK (char_length(run_id) <= 64),
    node        text NOT NULL CHECK (char_length(node) <= 300),
    urgent      boolean NOT NULL,
    path        text NOT NULL CHECK (path LIKE '/%' AND char_length(path) <= 200), -- of the page that shows it
    stored_at   timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER append_only BEFORE UPDATE ON notifications FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Since when notifications are made: what was before is not told.
CREATE TABLE notification_begin (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    at  timestamptz NOT NULL
);

-- By which people elsewhere are told.
CREATE TABLE notification_channels (
    name         text PRIMARY KEY CHECK (char_length(name) BETWEEN 1 AND 60 AND name !~ '[[:cntrl:]]' AND name = btrim(name)),
    -- Of this channel and no other that has its name later: receivers recognise repeats by it.
    identity     text NOT NULL UNIQUE CHECK (identity ~ '^[0-9a-f]{16}$'),
    version      integer NOT NULL CHECK (version >= 1),
    off          boolean NOT NULL,
    kinds        text[] NOT NULL CHECK (cardinality(kinds) <= 50), -- empty: all
    way          text NOT NULL CHECK (way IN ('webhook', 'email')),
    settings     jsonb NOT NULL CHECK (jsonb_typeof(settings) = 'object' AND octet_length(settings::text) <= 20000),
    sealed       bytea CHECK (octet_length(sealed) BETWEEN 1 AND 8192), -- the secret, encrypted; null: none
    created_at   timestamptz NOT NULL DEFAULT now(),
    delivered    integer NOT NULL DEFAULT 0 CHECK (delivered >= 0),
    given_up     integer NOT NULL DEFAULT 0 CHECK (given_up >= 0),
    delivered_at timestamptz,
    failed_at    timestamptz,
    -- The last error; empty: the last delivery succeeded, or there was none.
    error        text NOT NULL DEFAULT '' CHECK (char_length(error) <= 1000)
);

-- What is to be delivered, and what was: one row for a channel and a notification.
CREATE TABLE notification_deliveries (
    channel         text NOT NULL REFERENCES notification_channels (name) ON DELETE CASCADE,
    notification_id bigint NOT NULL REFERENCES notifications (id) ON DELETE CASCADE,
    created_at      timestamptz NOT NULL,
    tries           integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_try        timestamptz NOT NULL,
    error           text NOT NULL DEFAULT '' CHECK (char_length(error) <= 1000),
    delivered_at    timestamptz,
    given_up_at     timestamptz,
    PRIMARY KEY (channel, notification_id),
    CHECK (delivered_at IS NULL OR given_up_at IS NULL)
);
CREATE INDEX notification_deliveries_open ON notification_deliveries (channel, notification_id) WHERE delivered_at IS NULL AND given_up_at IS NULL;
CREATE INDEX notification_deliveries_notification ON notification_deliveries (notification_id);

-- Which runs have ended lately is asked often.
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;
