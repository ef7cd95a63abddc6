-- +goose Up

-- The schema. Its parts, in this order: campaigns and runs; what nodes recorded of them;
-- what people asked and said of them; views of runs; the library; preflights; people;
-- identities of nodes; trust.
--
-- Names of columns end in their unit (_ns, _us, _seconds, _bytes, _bps: bits a second). Text
-- that nobody gave is empty, and null is what is not known or has not happened. Times are by
-- the clock of the orchestrator, and of what nodes recorded by theirs.

-- +goose StatementBegin
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
-- +goose StatementEnd

-------------------------------------------------------------------------------------------
-- Campaigns and runs

CREATE TABLE campaigns (
    id          text PRIMARY KEY CHECK (id ~ '^[a-z0-9]{4,32}$'),
    -- Order of creation; the clock may be set back, this may not.
    ordinal     bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    name        text NOT NULL CHECK (name <> ''),
    plan        text NOT NULL,
    plan_file   text NOT NULL,
    plan_text   bytea NOT NULL,
    plan_hash   text NOT NULL CHECK (plan_hash ~ '^[0-9a-f]{64}$'),
    created_at  timestamptz NOT NULL DEFAULT now(),
    -- What is to be said of all its results.
    caveats     text[] NOT NULL DEFAULT '{}'
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
    last_contact_at  timestamptz NOT NULL,
    -- Of the virtual-time lab: no part of the fleet beyond its campaign.
    virtual          boolean NOT NULL DEFAULT false,
    -- Which lab vouches for the node's emulated radio: the identity of its key, empty for a
    -- node with a real radio; and why none does for a node that was started for a lab.
    lab              text NOT NULL DEFAULT '',
    lab_problem      text NOT NULL DEFAULT ''
);

CREATE TABLE runs (
    id                 text PRIMARY KEY CHECK (id ~ '^[a-z0-9]{4,32}-[0-9]{1,4}$'),
    ordinal            bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    campaign_id        text NOT NULL REFERENCES campaigns (id),
    cell               integer NOT NULL CHECK (cell >= 0),
    -- 'waiting': for people to move its nodes.
    state              text NOT NULL DEFAULT 'queued' CHECK (state IN
                           ('queued', 'waiting', 'preparing', 'running', 'collecting', 'completed', 'aborted', 'stopped')),
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
    -- Somebody has to say that the nodes stand where the topology has them.
    confirm_move       boolean NOT NULL DEFAULT false,
    -- Of the sheet, which is large: what lists of campaigns show.
    treatment_labels   text[] NOT NULL,
    swept              boolean NOT NULL,
    UNIQUE (campaign_id, cell),
    CHECK ((ended_at IS NOT NULL) = (state IN ('completed', 'aborted', 'stopped'))),
    CHECK ((abort_at IS NOT NULL) = (abort_reason IS NOT NULL)),
    CHECK (state <> 'running' OR started_at IS NOT NULL),
    CHECK (state <> 'collecting' OR collecting_at IS NOT NULL)
);
COMMENT ON COLUMN runs.treatment_labels IS 'labels of the treatments, and after them of the mixes of treatments, in the order of the sheet';
COMMENT ON COLUMN runs.swept IS 'a sweep of the plan has set parameters of this run';
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
    -- What was stored of the journal, in bytes as delivered, and what came after its end,
    -- which is kept in the journal as records of type 'late' and counts nowhere.
    journal_bytes  bigint NOT NULL DEFAULT 0 CHECK (journal_bytes >= 0),
    late_records   bigint NOT NULL DEFAULT 0 CHECK (late_records >= 0),
    late_bytes     bigint NOT NULL DEFAULT 0 CHECK (late_bytes >= 0),
    PRIMARY KEY (run_id, role),
    UNIQUE (run_id, node)
);
CREATE INDEX run_nodes_node ON run_nodes (node);

-- When a node had no contact with the orchestrator while it took part in a run.
CREATE TABLE contact_losses (
    run_id     text NOT NULL,
    node       text NOT NULL,
    lost_at    timestamptz NOT NULL, -- last contact before
    back_at    timestamptz, -- null: not yet, or not before the run had ended
    restarted  boolean NOT NULL DEFAULT false, -- its agent was started again meanwhile
    PRIMARY KEY (run_id, node, lost_at),
    FOREIGN KEY (run_id, node) REFERENCES run_nodes (run_id, node)
);

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

-------------------------------------------------------------------------------------------
-- What nodes recorded

-- The raw truth: every record of every journal. The other tables of this part follow from
-- this one. A record that cannot be stored keeps its place, as a record of type 'refused'
-- with the reason.
CREATE TABLE journal (
    run_id       text NOT NULL,
    node         text NOT NULL,
    seq          bigint NOT NULL CHECK (seq >= 1),
    type         text NOT NULL CHECK (type <> ''),
    at           timestamptz NOT NULL,
    body         jsonb,
    -- SHA-256 of the record as delivered: the same place in a journal cannot hold two things.
    digest       bytea NOT NULL CHECK (length(digest) = 32),
    received_at  timestamptz DEFAULT now(),
    PRIMARY KEY (run_id, node, seq),
    FOREIGN KEY (run_id, node) REFERENCES run_nodes (run_id, node)
);
CREATE INDEX journal_commands ON journal (run_id) WHERE type = 'command';
-- For views of the journal, which show no samples.
CREATE INDEX journal_lines ON journal (run_id, node, seq) WHERE type <> 'samples';
-- Of few records among many: what a run's page and its watchers show as faults; when
-- listeners, agents and radios' interfaces were not in order; what rules of validity, and
-- what the control traffic of attempts, are decided from.
CREATE INDEX journal_faults ON journal (run_id) WHERE type IN ('driver-misbehaved', 'refused', 'late');
CREATE INDEX journal_outages ON journal (run_id, node, seq) WHERE type IN ('run-resumed', 'listener-ready', 'listener-failed', 'agent-stopped', 'interface-failed', 'interface-ready');
CREATE INDEX journal_watched ON journal (run_id, node, seq) WHERE type = 'watched';
CREATE INDEX journal_control ON journal (run_id, node, seq) WHERE type = 'control-counted';

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
    run_id          text NOT NULL,
    trial           integer NOT NULL,
    attempt         integer NOT NULL CHECK (attempt >= 1),
    started_seq     bigint NOT NULL,
    started_at      timestamptz NOT NULL,
    -- Null until the attempt has its terminal record; never changed after.
    ended_seq       bigint,
    ended_at        timestamptz,
    verdict         text CHECK (verdict IN ('succeeded', 'failed', 'timed-out', 'aborted', 'invalid')),
    reason          text NOT NULL DEFAULT '',
    message         text NOT NULL DEFAULT '',
    duration_ns     bigint CHECK (duration_ns >= 0),
    dead_ns         bigint CHECK (dead_ns >= 0),
    -- The emulated radio's report, as internal/radiocontrol.Report. It holds the history of
    -- its channels, and is large.
    radio           jsonb,
    log             text NOT NULL DEFAULT '',
    -- Of the report: what pages that show many attempts need.
    ideal_ns        jsonb GENERATED ALWAYS AS (radio -> 'ideal_ns') STORED,
    coded_bound_ns  jsonb GENERATED ALWAYS AS (radio -> 'coded_bound_ns') STORED,
    -- What several flows that times bound delivered within one time, as
    -- orchestrator/report.CommonWindow: made of the server's samples, which may be deleted
    -- later. Null: no such attempt, or its samples were gone already.
    common_window   jsonb,
    -- What of the plan's rules of validity could not be decided about the attempt, one a
    -- line. Null: none was applied yet, or the plan has no rules.
    undecided       text,
    -- Of runs with in-band control: the packets between each node and the orchestrator that
    -- passed during the attempt, as the nodes counted them. Null: it is not decided yet, or
    -- control is not in-band.
    control         jsonb,
    -- What the leading node's processors kept from the programs of the attempt, as
    -- executor/journal.HostLoad. Null: it was not measured.
    host            jsonb,
    PRIMARY KEY (run_id, trial, attempt),
    FOREIGN KEY (run_id, trial) REFERENCES trials (run_id, trial),
    CHECK ((verdict IS NULL) = (ended_seq IS NULL)),
    CHECK ((ended_at IS NULL) = (ended_seq IS NULL))
-- The report is kept apart from its row, so that a campaign's attempts lie on few pages.
) WITH (toast_tuple_target = 256);
CREATE INDEX attempts_ended ON attempts (run_id, ended_seq);
-- Lists of campaigns count what went wrong.
CREATE INDEX attempts_not_succeeded ON attempts (run_id) WHERE verdict <> 'succeeded';

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

-- The server's word on a transfer. It can arrive before the client's, so it refers to no
-- attempt.
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
    -- How long it took, by the packets on the server's real radios, from when a payload had
    -- begun until as many bytes as it has had arrived.
    packets_ns  bigint CHECK (packets_ns > 0),
    PRIMARY KEY (run_id, node, seq),
    FOREIGN KEY (run_id, node, seq) REFERENCES journal (run_id, node, seq),
    CHECK ((digest IS NULL) = (size_bytes IS NULL)),
    CHECK ((digest IS NULL) <> (code = ''))
);
CREATE INDEX receptions_transfer ON receptions (run_id, transfer);

-- Probes of attempts: flows of packets beside transfers, or alone. They are no flows, so
-- that no figure of a transfer can be made of one.
CREATE TABLE probes (
    run_id      text NOT NULL,
    trial       integer NOT NULL,
    attempt     integer NOT NULL,
    -- Numbered on from the attempt's flows.
    probe       integer NOT NULL CHECK (probe >= 0),
    transfer    text NOT NULL CHECK (transfer ~ '^[0-9a-f]{32}$'),
    verdict     text CHECK (verdict IN ('succeeded', 'failed', 'timed-out', 'aborted', 'invalid')),
    reason      text NOT NULL DEFAULT '',
    message     text NOT NULL DEFAULT '',
    connect_ns  bigint CHECK (connect_ns >= 0),
    elapsed_ns  bigint CHECK (elapsed_ns >= 0),
    -- contract.ProbeFigures, as the client reports them.
    figures     jsonb,
    PRIMARY KEY (run_id, trial, attempt, probe),
    UNIQUE (run_id, transfer),
    FOREIGN KEY (run_id, trial, attempt) REFERENCES attempts (run_id, trial, attempt),
    CHECK (verdict IS DISTINCT FROM 'succeeded' OR (elapsed_ns IS NOT NULL AND figures IS NOT NULL))
);

-- What the server reports of a probe. It can arrive before the client's report, so it
-- refers to no attempt.
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
    -- Of a relay process: the role whose node runs it; empty: the treatment's own listener.
    -- A node can have both.
    at_role    text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, node, treatment, at_role),
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

-- The columns from sent_bytes to bandwidth_bps are those of contract.Sample.
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

-- Where in time the samples of a run lie, by the clocks of the nodes that took them, so
-- that reading them looks into the days that have some and no others.
CREATE TABLE sample_spans (
    run_id      text PRIMARY KEY REFERENCES runs (id),
    first_at    timestamptz NOT NULL,
    last_at     timestamptz NOT NULL CHECK (last_at >= first_at),
    -- Since when the samples are gone because they were old; null: they are there.
    dropped_at  timestamptz
);

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

-------------------------------------------------------------------------------------------
-- What people asked and said of runs

-- Commands to runs. Whether the leading agent has applied one follows from its journal.
CREATE TABLE run_commands (
    ordinal   bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id        text NOT NULL UNIQUE CHECK (id <> ''),
    run_id    text NOT NULL REFERENCES runs (id),
    kind      text NOT NULL CHECK (kind IN ('pause', 'resume', 'abort', 'skip', 'repeat', 'continue')),
    trial     integer,
    reason    text NOT NULL DEFAULT '',
    given_by  text NOT NULL DEFAULT '',
    given_at  timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (run_id, trial) REFERENCES trials (run_id, trial),
    CHECK ((trial IS NOT NULL) = (kind IN ('skip', 'repeat')))
);
CREATE INDEX run_commands_run ON run_commands (run_id, ordinal);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON run_commands FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Marks of attempts: whether their figures count. The newest mark of an attempt holds.
CREATE TABLE attempt_marks (
    ordinal   bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id        text NOT NULL UNIQUE CHECK (id <> ''),
    run_id    text NOT NULL,
    trial     integer NOT NULL,
    attempt   integer NOT NULL,
    invalid   boolean NOT NULL, -- false: takes earlier marks back
    reason    text NOT NULL DEFAULT '',
    given_by  text NOT NULL DEFAULT '',
    given_at  timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (run_id, trial, attempt) REFERENCES attempts (run_id, trial, attempt),
    CHECK (NOT invalid OR reason <> '')
);
CREATE INDEX attempt_marks_attempt ON attempt_marks (run_id, trial, attempt, ordinal);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON attempt_marks FOR EACH ROW EXECUTE FUNCTION refuse_change();

-------------------------------------------------------------------------------------------
-- Views of runs

-- The attempts whose figures must not count, with the mark that says so.
CREATE VIEW invalid_attempts AS
SELECT m.run_id, m.trial, m.attempt, m.reason, m.given_by, m.given_at
FROM (SELECT DISTINCT ON (run_id, trial, attempt) * FROM attempt_marks ORDER BY run_id, trial, attempt, ordinal DESC) m
WHERE m.invalid;

-- Commands with what became of them. One that the leading agent rejected has the time at
-- which it did.
CREATE VIEW command_states AS
SELECT o.ordinal, o.id, o.run_id, o.kind, o.trial, o.reason, o.given_by, o.given_at,
       CASE o.kind WHEN 'continue' THEN o.given_at
                   WHEN 'abort' THEN (SELECT r.ended_at FROM runs r WHERE r.id = o.run_id)
                   ELSE c.at
       END AS applied_at,
       coalesce(c.passed_over, '')::text AS rejected
FROM run_commands o
LEFT JOIN LATERAL (
    SELECT j.at, j.body ->> 'passed_over' AS passed_over FROM journal j
    WHERE j.run_id = o.run_id AND j.type = 'command' AND j.body ->> 'id' = o.id LIMIT 1) c ON true;

-- A run as people see it, without its sheet. The estimates of a run are unfolded once, not
-- once for each trial: the array of a long run is stored out of line, and takes longer to
-- fetch than all else.
CREATE VIEW run_overview AS
SELECT r.id, r.ordinal, r.campaign_id, c.name AS campaign, c.plan, r.cell, r.state, r.message, r.sheet_hash,
       r.radio, r.topology, r.size_bytes, r.trials, r.created_at, r.started_at, r.ended_at, r.estimated_seconds,
       t.trials_ended, a.attempts_failed,
       t.estimated_seconds_ended, t.estimated_seconds_left,
       a.measured_seconds_ended,
       coalesce((SELECT n.provenance ->> 'place' FROM run_nodes n WHERE n.run_id = r.id AND n.role = 'client'), '')::text AS place,
       -- Whether the newest command to pause or resume is to pause, whether the leading
       -- agent has dealt with it, and whether the run is held now.
       coalesce(p.kind = 'pause', false)::boolean AS pause_requested,
       coalesce(p.applied_at IS NOT NULL OR p.rejected <> '', false)::boolean AS pause_settled,
       coalesce(h.kind = 'pause', false)::boolean AS held,
       (SELECT coalesce(array_agg(n.node ORDER BY n.role), '{}') FROM run_nodes n WHERE n.run_id = r.id)::text[] AS nodes,
       coalesce(h.reason, '')::text AS pause_reason,
       -- The run has ended, and every journal of it.
       (r.ended_at IS NOT NULL AND NOT EXISTS (SELECT FROM run_nodes n WHERE n.run_id = r.id AND n.ended IS NULL))::boolean AS sealed,
       (SELECT coalesce(sum(n.late_records), 0) FROM run_nodes n WHERE n.run_id = r.id)::bigint AS late_records,
       -- The run is to be aborted, and nodes have not ended their parts yet: with in-band
       -- control that takes a window of each.
       (r.abort_at IS NOT NULL AND r.ended_at IS NULL)::boolean AS aborting
FROM runs r
JOIN campaigns c ON c.id = r.campaign_id
CROSS JOIN LATERAL (
    SELECT count(t.verdict)::integer AS trials_ended,
           coalesce(sum(e.seconds) FILTER (WHERE t.verdict IS NOT NULL), 0)::double precision AS estimated_seconds_ended,
           coalesce(sum(e.seconds) FILTER (WHERE t.verdict IS NULL), 0)::double precision AS estimated_seconds_left
    FROM trials t LEFT JOIN unnest(r.estimated_seconds) WITH ORDINALITY AS e (seconds, place) ON e.place = t.trial + 1
    WHERE t.run_id = r.id) t
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE a.verdict <> 'succeeded')::integer AS attempts_failed,
           (coalesce(sum(a.duration_ns) FILTER (WHERE e.verdict IS NOT NULL), 0) / 1e9)::double precision AS measured_seconds_ended
    FROM attempts a JOIN trials e ON e.run_id = a.run_id AND e.trial = a.trial
    WHERE a.run_id = r.id) a
LEFT JOIN LATERAL (
    SELECT o.kind, o.applied_at, o.rejected FROM command_states o
    WHERE o.run_id = r.id AND o.kind IN ('pause', 'resume') ORDER BY o.ordinal DESC LIMIT 1) p ON true
LEFT JOIN LATERAL (
    SELECT j.body ->> 'kind' AS kind, j.body ->> 'reason' AS reason FROM journal j
    WHERE j.run_id = r.id AND j.type = 'command' AND j.body ->> 'kind' IN ('pause', 'resume') AND j.body ->> 'passed_over' IS NULL
    ORDER BY j.seq DESC LIMIT 1) h ON true;

-------------------------------------------------------------------------------------------
-- The library

-- Plans that people keep, drafts with faults too.
CREATE TABLE saved_plans (
    name        text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,47}$'),
    text        bytea NOT NULL,
    -- Raised at every save: who edited another one is refused.
    revision    integer NOT NULL CHECK (revision >= 1),
    changed_at  timestamptz NOT NULL
);

-- Plans that start again and again by a rule, with the text as it was when that was said.
CREATE TABLE recurrences (
    id                 text PRIMARY KEY CHECK (id <> ''),
    plan               text NOT NULL CHECK (plan <> ''),
    plan_text          bytea NOT NULL,
    rule               text NOT NULL CHECK (rule <> ''), -- as orchestrator/library/recurrence writes it
    estimated_seconds  double precision NOT NULL CHECK (estimated_seconds >= 0),
    patience_seconds   double precision NOT NULL CHECK (patience_seconds > 0), -- of each start
    name               text NOT NULL, -- of the campaigns, before the time of each start; empty: the plan's
    given_by           text NOT NULL,
    given_at           timestamptz NOT NULL,
    -- 'ended': the rule has no further start.
    state              text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'ended', 'removed')),
    -- Only starts later than this are still to be entered into schedules.
    entered_until      timestamptz NOT NULL
);

-- Plans that start by themselves, with the text as it was when that was said. A start by a
-- rule is a schedule of its own, entered when the one before has ended.
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
    -- 'skipped': the run that the start before had begun was still under way.
    state              text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'starting', 'started', 'failed', 'missed', 'cancelled', 'skipped')),
    message            text NOT NULL DEFAULT '',
    campaign_id        text REFERENCES campaigns (id),
    claimed_at         timestamptz,
    ended_at           timestamptz,
    -- How late the plan may start: for so long it is tried again where a node is missing, or
    -- where the orchestrator itself was not running.
    patience_seconds   double precision NOT NULL DEFAULT 120 CHECK (patience_seconds > 0),
    recurrence_id      text REFERENCES recurrences (id),
    -- Which start of the rule it is, from 1; its seed follows from it.
    number             integer CHECK (number >= 1),
    CHECK ((ended_at IS NULL) = (state IN ('waiting', 'starting'))),
    CHECK ((state = 'started') = (campaign_id IS NOT NULL)),
    CHECK (state <> 'starting' OR claimed_at IS NOT NULL),
    CHECK ((recurrence_id IS NULL) = (number IS NULL))
);
CREATE INDEX schedules_open ON schedules (start_at) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX schedules_by_number ON schedules (recurrence_id, number);
CREATE UNIQUE INDEX schedules_next_of_recurrence ON schedules (recurrence_id) WHERE ended_at IS NULL;

-- The last conformance result of each driver.
CREATE TABLE conformance (
    driver      text PRIMARY KEY CHECK (driver <> ''),
    version     text NOT NULL,
    sha256      text NOT NULL,
    checked_at  timestamptz NOT NULL,
    -- Array of the API's ConformanceCheck.
    checks      jsonb NOT NULL CHECK (jsonb_typeof(checks) = 'array')
);

-------------------------------------------------------------------------------------------
-- Preflights

CREATE TABLE preflights (
    id          text PRIMARY KEY CHECK (id <> ''),
    ordinal     bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    topology    text NOT NULL,
    radio       text NOT NULL,
    nodes       text[] NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    plan        text NOT NULL DEFAULT '' -- empty: it was of no plan
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

-- What the preflight of a plan found of each treatment, by what identifies the treatment,
-- the radio and the nodes.
CREATE TABLE preflight_treatments (
    preflight_id  text NOT NULL REFERENCES preflights (id) ON DELETE CASCADE,
    fingerprint   text NOT NULL,
    works         boolean NOT NULL,
    PRIMARY KEY (preflight_id, fingerprint)
);
CREATE INDEX preflight_treatments_fingerprint ON preflight_treatments (fingerprint);

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

-------------------------------------------------------------------------------------------
-- People, and what they did

CREATE TABLE users (
    name           text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9._-]{0,31}$'),
    role           text NOT NULL CHECK (role IN ('viewer', 'director', 'admin')),
    -- argon2id, as a PHC string; empty: the user logs in at a provider.
    password       text NOT NULL CHECK (password = '' OR password LIKE '$argon2id$%'),
    disabled       boolean NOT NULL DEFAULT false,
    created_at     timestamptz NOT NULL,
    last_login_at  timestamptz
);

-- Users of an OpenID Connect provider: whose account there is whose here. The provider's
-- subject stays the same when a person's name changes, and no other person gets it.
CREATE TABLE provider_accounts (
    user_name  text PRIMARY KEY REFERENCES users (name),
    issuer     text NOT NULL CHECK (issuer <> ''),
    subject    text NOT NULL CHECK (subject <> ''),
    UNIQUE (issuer, subject)
);

-- Second factors of users: time-based one-time passwords (TOTP, RFC 6238).
CREATE TABLE second_factors (
    user_name     text PRIMARY KEY REFERENCES users (name),
    created_at    timestamptz NOT NULL,
    confirmed_at  timestamptz, -- null: no code of it was given yet, and no login asks for one
    -- The time step of the last code that was taken: no code is taken twice, and none of
    -- an earlier step.
    last_step     bigint NOT NULL DEFAULT 0,
    -- The secret as the orchestrator sealed it with a key of its data folder
    -- (docs/security.md): nonce, 20 encrypted bytes, tag.
    sealed        bytea NOT NULL CHECK (octet_length(sealed) = 48)
);

-- Codes for when the second factor is lost, each good once. Of a code only its hash.
CREATE TABLE recovery_codes (
    user_name  text NOT NULL REFERENCES users (name),
    hash       bytea NOT NULL CHECK (octet_length(hash) = 32),
    used_at    timestamptz,
    PRIMARY KEY (user_name, hash)
);

-- Of a session only what its cookie's secret hashes to.
CREATE TABLE sessions (
    hash        bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    user_name   text NOT NULL REFERENCES users (name),
    created_at  timestamptz NOT NULL,
    used_at     timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL CHECK (expires_at > created_at)
);
CREATE INDEX sessions_of_user ON sessions (user_name);

-- Revoked ones stay, so that the audit log can name them.
CREATE TABLE api_tokens (
    id          text PRIMARY KEY CHECK (id <> ''),
    hash        bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    user_name   text NOT NULL REFERENCES users (name),
    name        text NOT NULL CHECK (name <> ''),
    role        text NOT NULL CHECK (role IN ('viewer', 'director', 'admin')),
    of_login    boolean NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL CHECK (expires_at > created_at),
    used_at     timestamptz,
    revoked_at  timestamptz
);
CREATE INDEX api_tokens_of_user ON api_tokens (user_name);
-- Two tokens that work have different names, so that one can be revoked by it.
CREATE UNIQUE INDEX api_tokens_name ON api_tokens (user_name, name) WHERE revoked_at IS NULL;

-- The audit log, a chain: an entry has the SHA-256 over the hash of the entry before it and
-- its own content (docs/security.md has the bytes). Numbers are given with the hash, one
-- after the other, so the primary key alone keeps two writers from continuing the chain at
-- the same place.
CREATE TABLE audit (
    id         bigint PRIMARY KEY,
    at         timestamptz NOT NULL,
    -- No reference: who failed to log in need not exist.
    user_name  text NOT NULL,
    via        text NOT NULL,
    address    text NOT NULL,
    action     text NOT NULL CHECK (action <> ''),
    detail     text NOT NULL,
    outcome    text NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
    message    text NOT NULL,
    hash       bytea NOT NULL CHECK (octet_length(hash) = 32)
);
CREATE INDEX audit_of_user ON audit (user_name, id);
CREATE INDEX audit_at ON audit (at);

-- Signed heads: the number and hash of what was the last entry at the time, signed by the
-- orchestrator. No reference to the entry: where one is removed, its head tells.
CREATE TABLE audit_heads (
    entry      bigint PRIMARY KEY,
    hash       bytea NOT NULL CHECK (octet_length(hash) = 32),
    signed_at  timestamptz NOT NULL,
    key_id     text NOT NULL,
    signature  bytea NOT NULL
);

-- +goose StatementBegin
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only added to';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_heads_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_heads
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();

-------------------------------------------------------------------------------------------
-- Identities of nodes

-- One-time tokens with which nodes enrol. Only the hash is kept: the database, or a copy of
-- it, enrols nobody.
CREATE TABLE node_tokens (
    hash          bytea PRIMARY KEY CHECK (length(hash) = 32),
    node          text NOT NULL CHECK (node ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'),
    created_at    timestamptz NOT NULL,
    created_by    text NOT NULL,
    expires_at    timestamptz NOT NULL CHECK (expires_at > created_at),
    used_at       timestamptz,
    used_from     text NOT NULL DEFAULT '',
    withdrawn_at  timestamptz
);
CREATE INDEX node_tokens_open ON node_tokens (node) WHERE used_at IS NULL AND withdrawn_at IS NULL;

-- Every certificate that the authority gave to a node. A certificate that is not here is
-- refused, whoever signed it.
CREATE TABLE node_certificates (
    serial      text PRIMARY KEY CHECK (serial <> ''),
    node        text NOT NULL,
    der         bytea NOT NULL,
    -- SHA-256 of the public key.
    key_hash    bytea NOT NULL CHECK (length(key_hash) = 32),
    -- Null: a renewal.
    token_hash  bytea UNIQUE REFERENCES node_tokens (hash),
    issued_at   timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL CHECK (expires_at > issued_at),
    revoked_at  timestamptz,
    revoked_by  text NOT NULL DEFAULT '',
    reason      text NOT NULL DEFAULT ''
);
CREATE INDEX node_certificates_newest ON node_certificates (node, issued_at DESC);

-------------------------------------------------------------------------------------------
-- Trust in what is run

-- Who vouches for a run's sheet. Agents refuse a run without a row.
CREATE TABLE run_signatures (
    run_id     text PRIMARY KEY REFERENCES runs (id),
    key_id     text NOT NULL CHECK (key_id <> ''),
    signature  bytea NOT NULL CHECK (length(signature) = 64)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON run_signatures FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Approvals of digests of drivers that the orchestrator does not have itself, and their
-- withdrawals; the newest row of a digest holds.
CREATE TABLE driver_approvals (
    ordinal   bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    protocol  text NOT NULL CHECK (protocol <> ''),
    digest    text NOT NULL CHECK (digest ~ '^(image:)?sha256:[0-9a-f]{64}$'),
    approved  boolean NOT NULL,
    reason    text NOT NULL DEFAULT '',
    given_by  text NOT NULL DEFAULT '',
    given_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX driver_approvals_digest ON driver_approvals (protocol, digest, ordinal);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON driver_approvals FOR EACH ROW EXECUTE FUNCTION refuse_change();
