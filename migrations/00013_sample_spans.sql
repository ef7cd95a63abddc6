-- +goose Up

-- Where in time the samples of a run lie, by the clocks of the nodes that took
-- them, so that reading them looks into the days that have some and no others.
CREATE TABLE sample_spans (
    run_id   text PRIMARY KEY REFERENCES runs (id),
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL CHECK (last_at >= first_at),
    -- Since when the samples are gone because they were old; NULL: they are there.
    dropped_at timestamptz
);

INSERT INTO sample_spans (run_id, first_at, last_at) SELECT run_id, min(at), max(at) FROM samples GROUP BY run_id;

-- A database that got the extension after its samples: they become a hypertable
-- with what is in them. Where this user may not, they stay a plain table.
-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'timescaledb') THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'timescaledb') THEN
        IF current_setting('shared_preload_libraries') NOT LIKE '%timescaledb%' THEN
            RETURN;
        END IF;
        CREATE EXTENSION timescaledb;
    END IF;
    PERFORM create_hypertable('samples', 'at', chunk_time_interval => INTERVAL '1 day', if_not_exists => true, migrate_data => true);
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'samples stay a plain table: this user may not make them a hypertable';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION note_sample_spans() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO sample_spans AS s (run_id, first_at, last_at)
    SELECT run_id, min(at), max(at) FROM fresh GROUP BY run_id ORDER BY run_id
    ON CONFLICT (run_id) DO UPDATE SET first_at = least(s.first_at, excluded.first_at), last_at = greatest(s.last_at, excluded.last_at), dropped_at = NULL
    WHERE excluded.first_at < s.first_at OR excluded.last_at > s.last_at OR s.dropped_at IS NOT NULL;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER sample_spans_noted AFTER INSERT ON samples REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION note_sample_spans();
