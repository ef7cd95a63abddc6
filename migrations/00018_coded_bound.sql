-- +goose Up

-- As ideal_ns of 00008: of the report of an emulated radio, pages that show many
-- attempts need this, too. Reports from before it have none.
ALTER TABLE attempts ADD COLUMN coded_bound_ns jsonb GENERATED ALWAYS AS (radio -> 'coded_bound_ns') STORED;
