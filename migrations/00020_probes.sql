-- +goose Up

-- Probes of attempts: flows of packets beside transfers, or alone. They are no
-- flows, so that no figure of a transfer can be made of one.
CREATE TABLE probes (
    run_id       text NOT NULL,
    trial        integer NOT NULL,
    attempt      integer NOT NULL,
    -- Numbered on from the attempt's flows.
    probe        integer NOT NULL CHECK (probe >= 0),
    transfer     text NOT NULL CHECK (transfer ~ '^[0-9a-f]{32}$'),
    verdict      text CHECK (verdict IN ('succeeded', 'failed', 'timed-out', 'aborted', 'invalid')),
    reason       text NOT NULL DEFAULT '',
    message      text NOT NULL DEFAULT '',
    connect_ns   bigint CHECK (connect_ns >= 0),
    elapsed_ns   bigint CHECK (elapsed_ns >= 0),
    -- contract.ProbeFigures, as the client reports them.
    figures      jsonb,
    PRIMARY KEY (run_id, trial, attempt, probe),
    UNIQUE (run_id, transfer),
    FOREIGN KEY (run_id, trial, attempt) REFERENCES attempts (run_id, trial, attempt),
    CHECK (verdict IS DISTINCT FROM 'succeeded' OR (elapsed_ns IS NOT NULL AND figures IS NOT NULL))
);

-- What the server reports of a probe. It can arrive before the client's report, so
-- it refers to no attempt.
CREATE TABLE probe_receptions (
    run_id    text NOT NULL,
    node      text NOT NULL,
    seq       bigint NOT NULL,
    transfer  text NOT NULL CHECK (transfer ~ '^[0-9a-f]{32}$'),
    at        timestamptz NOT NULL,
    figures   jsonb NOT NULL,
    PRIMARY KEY (run_id, node, seq),
    FOREIGN KEY (run_id, node, seq) REFERENCES journal (run_id, node, seq)
);
CREATE INDEX probe_receptions_transfer ON probe_receptions (run_id, transfer);
