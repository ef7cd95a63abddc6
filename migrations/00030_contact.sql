-- +goose Up

-- Nodes of the virtual-time lab: they are no part of the fleet beyond their campaign.
ALTER TABLE nodes ADD COLUMN virtual boolean NOT NULL DEFAULT false;
UPDATE nodes SET virtual = true WHERE name IN ('virtual-client', 'virtual-relay', 'virtual-server');

-- When a node had no contact with the orchestrator while it took part in a run.
CREATE TABLE contact_losses (
    run_id    text NOT NULL,
    node      text NOT NULL,
    lost_at   timestamptz NOT NULL, -- last contact before
    back_at   timestamptz,          -- null: not yet, or not before the run had ended
    restarted boolean NOT NULL DEFAULT false, -- its agent was started again meanwhile
    PRIMARY KEY (run_id, node, lost_at),
    FOREIGN KEY (run_id, node) REFERENCES run_nodes (run_id, node)
);
