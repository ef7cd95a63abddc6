-- +goose Up
-- Which lab vouches for a node's emulated radio: the identity of its key, empty for a node
-- with a real radio, and why none does for a node that was started for a lab. A node that
-- registered before a lab could vouch for it counts as real until it registers again.
ALTER TABLE nodes
    ADD COLUMN lab text NOT NULL DEFAULT '',
    ADD COLUMN lab_problem text NOT NULL DEFAULT '';
UPDATE nodes SET emulated = false WHERE NOT virtual;
