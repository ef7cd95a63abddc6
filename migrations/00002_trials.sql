-- +goose Up

CREATE TABLE trials (
    run_id     text NOT NULL REFERENCES runs (id),
    trial      integer NOT NULL CHECK (trial >= 0),
    iteration  integer NOT NULL CHECK (iteration >= 1),
    treatment  text NOT NULL CHECK (treatment <> ''),
    -- Null until the trial has a terminal record.
    verdict    text CHECK (verdict IN ('succeeded', 'failed', 'timed-out', 'aborted', 'invalid')),
    PRIMARY KEY (run_id, trial)
);

CREATE TABLE attempts (
    run_id       text NOT NULL,
    trial        integer NOT NULL,
    attempt      integer NOT NULL CHECK (attempt >= 1),
    started_seq  bigint NOT NULL,
    started_at   timestamptz NOT NULL,
    -- Null until the attempt has its terminal record; never changed after.
    ended_seq    bigint,
    ended_at     timestamptz,
    verdict      text CHECK (verdict IN ('succeeded', 'failed', 'timed-out', 'aborted', 'invalid')),
    reason       text NOT NULL DEFAULT '',
    message      text NOT NULL DEFAULT '',
    duration_ns  bigint CHECK (duration_ns >= 0),
    dead_ns      bigint CHECK (dead_ns >= 0),
    -- The emulated radio's report, as internal/radiocontrol.Report.
    radio        jsonb,
    log          text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, trial, attempt),
    FOREIGN KEY (run_id, trial) REFERENCES trials (run_id, trial),
    CHECK ((verdict IS NULL) = (ended_seq IS NULL)),
    CHECK ((ended_at IS NULL) = (ended_seq IS NULL))
);
CREATE INDEX attempts_ended ON attempts (run_id, ended_seq);

CREATE TABLE flows (
    run_id       text NOT NULL,
    trial        integer NOT NULL,
    attempt      integer NOT NULL,
    flow         integer NOT NULL CHECK (flow >= 0),
    transfer     text NOT NULL CHECK (transfer ~ '^[0-9a-f]{32}$'),
    verdict      text CHECK (verdict IN ('succeeded', 'failed', 'timed-out', 'aborted', 'invalid')),
    reason       text NOT NULL DEFAULT '',
    message      text NOT NULL DEFAULT '',
    connect_ns   bigint CHECK (connect_ns >= 0),
    size_bytes   bigint CHECK (size_bytes >= 0),
    elapsed_ns   bigint CHECK (elapsed_ns >= 0),
    digest       text CHECK (digest ~ '^[0-9a-f]{64}$'),
    -- contract.Sample: the last state known of the protocol.
    last_sample  jsonb,
    -- contract.Info, where the driver refined what it had said.
    info         jsonb,
    PRIMARY KEY (run_id, trial, attempt, flow),
    UNIQUE (run_id, transfer),
    FOREIGN KEY (run_id, trial, attempt) REFERENCES attempts (run_id, trial, attempt),
    CHECK (verdict IS DISTINCT FROM 'succeeded' OR (size_bytes IS NOT NULL AND elapsed_ns IS NOT NULL AND digest IS NOT NULL))
);

-- The server's word on a transfer. It can arrive before the client's, so it
-- refers to no attempt.
CREATE TABLE receptions (
    run_id      text NOT NULL,
    node        text NOT NULL,
    seq         bigint NOT NULL,
    treatment   text NOT NULL,
    transfer    text CHECK (transfer ~ '^[0-9a-f]{32}$'),
    at          timestamptz NOT NULL,
    size_bytes  bigint CHECK (size_bytes >= 0),
    elapsed_ns  bigint CHECK (elapsed_ns >= 0),
    digest      text CHECK (digest ~ '^[0-9a-f]{64}$'),
    code        text NOT NULL DEFAULT '',
    message     text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, node, seq),
    FOREIGN KEY (run_id, node, seq) REFERENCES journal (run_id, node, seq),
    CHECK ((digest IS NULL) = (size_bytes IS NULL)),
    CHECK ((digest IS NULL) <> (code = ''))
);
CREATE INDEX receptions_transfer ON receptions (run_id, transfer);

CREATE TABLE listeners (
    run_id     text NOT NULL,
    node       text NOT NULL,
    treatment  text NOT NULL,
    ready      boolean NOT NULL,
    port       integer NOT NULL CHECK (port BETWEEN 0 AND 65535),
    info       jsonb,
    code       text NOT NULL DEFAULT '',
    message    text NOT NULL DEFAULT '',
    restarts   integer NOT NULL DEFAULT 0 CHECK (restarts >= 0),
    at         timestamptz NOT NULL,
    PRIMARY KEY (run_id, node, treatment),
    FOREIGN KEY (run_id, node) REFERENCES run_nodes (run_id, node)
);

CREATE TABLE clock_offsets (
    run_id     text NOT NULL,
    node       text NOT NULL,
    seq        bigint NOT NULL,
    at         timestamptz NOT NULL,
    moment     text NOT NULL, -- "before" or "after" the run
    offset_ns  bigint NOT NULL,
    error_ns   bigint NOT NULL CHECK (error_ns >= 0),
    unknown    text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, node, seq),
    FOREIGN KEY (run_id, node, seq) REFERENCES journal (run_id, node, seq)
);
