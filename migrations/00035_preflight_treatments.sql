-- +goose Up

-- What the preflight of a plan found of each treatment, by what identifies the treatment,
-- the radio and the nodes; and what is to be said of all results of a campaign.
CREATE TABLE preflight_treatments (
    preflight_id text NOT NULL REFERENCES preflights (id) ON DELETE CASCADE,
    fingerprint  text NOT NULL,
    works        boolean NOT NULL,
    PRIMARY KEY (preflight_id, fingerprint)
);
CREATE INDEX preflight_treatments_fingerprint ON preflight_treatments (fingerprint);
ALTER TABLE campaigns ADD COLUMN caveats text[] NOT NULL DEFAULT '{}';
ALTER TABLE preflights ADD COLUMN plan text NOT NULL DEFAULT '';
