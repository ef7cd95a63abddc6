-- +goose Up

-- What radios, and the laptops beside them, told of themselves during a run.
CREATE TABLE telemetry (
    run_id   text NOT NULL,
    node     text NOT NULL,
    seq      bigint NOT NULL,
    at       timestamptz NOT NULL, -- by the node's clock
    source   text NOT NULL CHECK (source <> ''),
    kind     text NOT NULL,
    -- Empty where the source could not be read; error says why.
    name     text NOT NULL,
    unit     text NOT NULL,
    value    double precision,
    counter  boolean NOT NULL,
    error    text NOT NULL,
    PRIMARY KEY (run_id, node, seq, name),
    FOREIGN KEY (run_id, node) REFERENCES run_nodes (run_id, node),
    CHECK ((value IS NULL) = (name = '')),
    CHECK ((error <> '') = (name = ''))
);
CREATE INDEX telemetry_of_run ON telemetry (run_id, at);
