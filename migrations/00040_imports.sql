-- +goose Up

-- Campaigns of other orchestrators: the JSON export of each, as it was read. They are no
-- rows of campaigns and runs, so that no command, mark or journal can reach them.
CREATE TABLE imports (
    campaign_id  text PRIMARY KEY CHECK (campaign_id ~ '^[a-z0-9]{4,32}$'),
    plan         text NOT NULL,
    runs         integer NOT NULL CHECK (runs >= 1),
    trials       integer NOT NULL CHECK (trials >= 0),
    created_at   timestamptz NOT NULL, -- of the campaign, by the other orchestrator
    place        text NOT NULL,
    radios       text[] NOT NULL,
    topologies   text[] NOT NULL,
    sizes_bytes  bigint[] NOT NULL,
    treatments   text[] NOT NULL, -- labels
    content      bytea NOT NULL,
    sha256       text NOT NULL CHECK (sha256 = encode(sha256(content), 'hex')),
    origin       text NOT NULL, -- whose results they are, as the importing person said
    file_name    text NOT NULL,
    given_by     text NOT NULL,
    given_at     timestamptz NOT NULL DEFAULT now()
);
