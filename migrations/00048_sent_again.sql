-- +goose Up

-- What the protocols of transfers sent in all and again, and the least round-trip time that
-- they know (docs/driver-contract.md).
ALTER TABLE samples
    ADD COLUMN transmitted_bytes bigint CHECK (transmitted_bytes >= 0),
    ADD COLUMN retransmitted_bytes bigint CHECK (retransmitted_bytes >= 0),
    ADD COLUMN min_rtt_us bigint CHECK (min_rtt_us >= 0);
