-- +goose Up

-- What a probe measured is in metrics, as everywhere else: a figure is a drawing.
ALTER TABLE probes RENAME COLUMN figures TO metrics;
ALTER TABLE probe_receptions RENAME COLUMN figures TO metrics;
