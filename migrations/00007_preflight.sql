-- +goose Up

CREATE TABLE preflights (
    id          text PRIMARY KEY CHECK (id <> ''),
    ordinal     bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    topology    text NOT NULL,
    radio       text NOT NULL,
    nodes       text[] NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz
);

CREATE TABLE preflight_checks (
    preflight_id  text NOT NULL REFERENCES preflights (id) ON DELETE CASCADE,
    ordinal       integer NOT NULL CHECK (ordinal >= 0),
    node          text NOT NULL,
    peer          text NOT NULL,
    kind          text NOT NULL CHECK (kind <> ''),
    -- The API's CheckState.
    state         integer NOT NULL CHECK (state BETWEEN 0 AND 4),
    found         text NOT NULL,
    expected      text NOT NULL,
    meaning       text NOT NULL,
    remedy        text NOT NULL,
    PRIMARY KEY (preflight_id, ordinal)
);

-- The radio between two nodes as last probed, by direction.
CREATE TABLE links (
    from_node  text NOT NULL,
    to_node    text NOT NULL,
    network    text NOT NULL,
    reachable  boolean NOT NULL,
    rtt_ns     bigint NOT NULL CHECK (rtt_ns >= 0), -- median; 0 where unreachable
    loss       double precision NOT NULL CHECK (loss BETWEEN 0 AND 1),
    probes     integer NOT NULL CHECK (probes >= 0),
    probed_at  timestamptz NOT NULL,
    PRIMARY KEY (from_node, to_node, network)
);
