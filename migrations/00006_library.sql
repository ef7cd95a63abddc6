-- +goose Up

-- Plans that people keep, drafts with faults too.
CREATE TABLE saved_plans (
    name        text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,47}$'),
    text        bytea NOT NULL,
    -- Raised at every save: who edited another one is refused.
    revision    integer NOT NULL CHECK (revision >= 1),
    changed_at  timestamptz NOT NULL
);

-- Plans that start by themselves, with the text as it was when that was said.
CREATE TABLE schedules (
    id                 text PRIMARY KEY CHECK (id <> ''),
    plan               text NOT NULL CHECK (plan <> ''),
    plan_text          bytea NOT NULL,
    plan_hash          text NOT NULL CHECK (plan_hash = encode(sha256(plan_text), 'hex')),
    start_at           timestamptz NOT NULL,
    estimated_seconds  double precision NOT NULL CHECK (estimated_seconds >= 0),
    name               text NOT NULL, -- of the campaign; empty: the plan's
    given_by           text NOT NULL,
    given_at           timestamptz NOT NULL,
    -- 'starting' is written before the campaign is, so that no crash starts it twice.
    state              text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'starting', 'started', 'failed', 'missed', 'cancelled')),
    message            text NOT NULL DEFAULT '',
    campaign_id        text REFERENCES campaigns (id),
    claimed_at         timestamptz,
    ended_at           timestamptz,
    CHECK ((ended_at IS NULL) = (state IN ('waiting', 'starting'))),
    CHECK ((state = 'started') = (campaign_id IS NOT NULL)),
    CHECK (state <> 'starting' OR claimed_at IS NOT NULL)
);
CREATE INDEX schedules_open ON schedules (start_at) WHERE ended_at IS NULL;

-- The last conformance result of each driver.
CREATE TABLE conformance (
    driver      text PRIMARY KEY CHECK (driver <> ''),
    version     text NOT NULL,
    sha256      text NOT NULL,
    checked_at  timestamptz NOT NULL,
    -- Array of the API's ConformanceCheck.
    checks      jsonb NOT NULL CHECK (jsonb_typeof(checks) = 'array')
);
