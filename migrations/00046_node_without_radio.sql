-- +goose Up

-- A node that has no radio yet may have no role yet either.
ALTER TABLE nodes DROP CONSTRAINT nodes_role_check,
    ADD CONSTRAINT nodes_role_check CHECK (role IN ('', 'client', 'relay', 'server'));
