-- +goose Up

CREATE TABLE samples (
    at              timestamptz NOT NULL,
    run_id          text NOT NULL,
    trial           integer NOT NULL,
    attempt         integer NOT NULL CHECK (attempt >= 1),
    flow            integer NOT NULL CHECK (flow >= 0),
    side            text NOT NULL CHECK (side IN ('client', 'server')),
    elapsed_ns      bigint NOT NULL CHECK (elapsed_ns >= 0),
    sent_bytes      bigint NOT NULL CHECK (sent_bytes >= 0),
    acked_bytes     bigint CHECK (acked_bytes >= 0),
    cwnd_bytes      bigint CHECK (cwnd_bytes >= 0),
    ssthresh_bytes  bigint CHECK (ssthresh_bytes >= 0),
    flight_bytes    bigint CHECK (flight_bytes >= 0),
    srtt_us         bigint CHECK (srtt_us >= 0),
    rttvar_us       bigint CHECK (rttvar_us >= 0),
    rto_us          bigint CHECK (rto_us >= 0),
    retransmits     bigint CHECK (retransmits >= 0),
    timeouts        bigint CHECK (timeouts >= 0),
    loss_events     bigint CHECK (loss_events >= 0),
    pacing_bps      double precision CHECK (pacing_bps >= 0),
    bandwidth_bps   double precision CHECK (bandwidth_bps >= 0),
    -- What only this protocol has; names end in their unit.
    more            jsonb,
    FOREIGN KEY (run_id, trial) REFERENCES trials (run_id, trial)
);
CREATE INDEX samples_attempt ON samples (run_id, trial, attempt, flow, side, elapsed_ns);

-- +goose StatementBegin
-- A hypertable where the server and this user's rights allow one.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'timescaledb') THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'timescaledb') THEN
        -- The library must have been loaded at the server's start: CREATE
        -- EXTENSION would end the session otherwise. Not every user may look.
        IF current_setting('shared_preload_libraries') NOT LIKE '%timescaledb%' THEN
            RETURN;
        END IF;
        CREATE EXTENSION timescaledb;
    END IF;
    PERFORM create_hypertable('samples', 'at', chunk_time_interval => INTERVAL '1 day');
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'samples stay a plain table: this user may not create the extension timescaledb';
END $$;
-- +goose StatementEnd
