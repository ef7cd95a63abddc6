-- +goose Up

-- What directors add to the report of a campaign in their own words (docs/report.md). A
-- version is never changed: the newest one of a campaign holds, and one without any text
-- takes the earlier ones back.
CREATE TABLE report_words (
    campaign_id text NOT NULL REFERENCES campaigns (id),
    version     integer NOT NULL CHECK (version >= 1), -- counts from 1 in a campaign
    title       text NOT NULL CHECK (char_length(title) <= 200),
    author      text NOT NULL CHECK (char_length(author) <= 200),
    summary     text NOT NULL CHECK (char_length(summary) <= 10000),
    -- Texts by the key of their chapter.
    remarks     jsonb NOT NULL CHECK (jsonb_typeof(remarks) = 'object' AND octet_length(remarks::text) <= 1048576),
    given_by    text NOT NULL,
    given_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, version)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON report_words FOR EACH ROW EXECUTE FUNCTION refuse_change();
