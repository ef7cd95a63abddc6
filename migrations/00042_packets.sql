-- +goose Up

-- How long it took, by the packets on the server's real radios, from when a payload had
-- begun until as many bytes as it has had arrived.
ALTER TABLE receptions ADD COLUMN packets_ns bigint CHECK (packets_ns > 0);
