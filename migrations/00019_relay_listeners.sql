-- +goose Up

-- A treatment may have relay processes besides its listener on the server: at is
-- the role whose node runs one, empty for the treatment's own listener. A node can
-- have both.
ALTER TABLE listeners ADD COLUMN at_role text NOT NULL DEFAULT '';
ALTER TABLE listeners DROP CONSTRAINT listeners_pkey;
ALTER TABLE listeners ADD PRIMARY KEY (run_id, node, treatment, at_role);
