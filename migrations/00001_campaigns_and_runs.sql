-- +goose Up

CREATE TABLE campaigns (
    id          text PRIMARY KEY CHECK (id ~ '^[a-z0-9]{4,32}$'),
    -- Order of creation; the clock may be set back, this may not.
    ordinal     bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    name        text NOT NULL CHECK (name <> ''),
    plan        text NOT NULL,
    plan_file   text NOT NULL,
    plan_text   bytea NOT NULL,
    plan_hash   text NOT NULL CHECK (plan_hash ~ '^[0-9a-f]{64}$'),
    created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE nodes (
    name             text PRIMARY KEY CHECK (name <> ''),
    role             text NOT NULL CHECK (role IN ('client', 'relay', 'server')),
    version          text NOT NULL,
    host             text NOT NULL,
    kernel           text NOT NULL,
    radio            text NOT NULL,
    emulated         boolean NOT NULL,
    radio_address    text NOT NULL,
    disk_free_bytes  bigint NOT NULL CHECK (disk_free_bytes >= 0),
    -- Array of the API's DriverState.
    drivers          jsonb NOT NULL CHECK (jsonb_typeof(drivers) = 'array'),
    incarnation      text NOT NULL CHECK (incarnation <> ''),
    registered_at    timestamptz NOT NULL,
    last_contact_at  timestamptz NOT NULL
);

CREATE TABLE runs (
    id                 text PRIMARY KEY CHECK (id ~ '^[a-z0-9]{4,32}-[0-9]{1,4}$'),
    ordinal            bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    campaign_id        text NOT NULL REFERENCES campaigns (id),
    cell               integer NOT NULL CHECK (cell >= 0),
    state              text NOT NULL DEFAULT 'queued' CHECK (state IN
                           ('queued', 'preparing', 'running', 'collecting', 'completed', 'aborted', 'stopped')),
    message            text NOT NULL DEFAULT '',
    -- The run sheet as the agents get it; its hash is part of every result.
    sheet              bytea NOT NULL,
    sheet_hash         text NOT NULL CHECK (sheet_hash = encode(sha256(sheet), 'hex')),
    radio              text NOT NULL,
    topology           text NOT NULL,
    size_bytes         bigint NOT NULL CHECK (size_bytes >= 0),
    trials             integer NOT NULL CHECK (trials >= 0),
    -- Of each trial, in the sheet's order.
    estimated_seconds  double precision[] NOT NULL CHECK (cardinality(estimated_seconds) = trials),
    -- Set: the run is to end, and why. By a person, or by a fault of a node.
    abort_reason       text,
    abort_fault        boolean NOT NULL DEFAULT false,
    created_at         timestamptz NOT NULL DEFAULT now(),
    prepared_at        timestamptz,
    started_at         timestamptz,
    abort_at           timestamptz,
    collecting_at      timestamptz,
    ended_at           timestamptz,
    UNIQUE (campaign_id, cell),
    CHECK ((ended_at IS NOT NULL) = (state IN ('completed', 'aborted', 'stopped'))),
    CHECK ((abort_at IS NOT NULL) = (abort_reason IS NOT NULL)),
    CHECK (state <> 'running' OR started_at IS NOT NULL),
    CHECK (state <> 'collecting' OR collecting_at IS NOT NULL)
);
CREATE INDEX runs_open ON runs (ordinal) WHERE ended_at IS NULL;

-- Which node has which part in a run, and how far its journal is stored.
CREATE TABLE run_nodes (
    run_id         text NOT NULL REFERENCES runs (id),
    role           text NOT NULL CHECK (role IN ('client', 'relay', 'server')),
    node           text NOT NULL REFERENCES nodes (name),
    committed_seq  bigint NOT NULL DEFAULT 0 CHECK (committed_seq >= 0),
    delivered_at   timestamptz,
    -- How the node's part ended, once its journal says so.
    ended          text CHECK (ended IN ('completed', 'aborted', 'stopped')),
    end_reason     text NOT NULL DEFAULT '',
    provenance     jsonb,
    PRIMARY KEY (run_id, role),
    UNIQUE (run_id, node)
);
CREATE INDEX run_nodes_node ON run_nodes (node);

-- The raw truth: every record of every journal. All tables of the next
-- migration follow from this one.
CREATE TABLE journal (
    run_id  text NOT NULL,
    node    text NOT NULL,
    seq     bigint NOT NULL CHECK (seq >= 1),
    type    text NOT NULL CHECK (type <> ''),
    at      timestamptz NOT NULL,
    body    jsonb,
    -- SHA-256 of the record as delivered: the same place in a journal cannot hold two things.
    digest  bytea NOT NULL CHECK (length(digest) = 32),
    PRIMARY KEY (run_id, node, seq),
    FOREIGN KEY (run_id, node) REFERENCES run_nodes (run_id, node)
);
CREATE INDEX journal_misbehaved ON journal (run_id) WHERE type = 'driver-misbehaved';
