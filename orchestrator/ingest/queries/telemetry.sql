-- name: InsertTelemetry :copyfrom
INSERT INTO telemetry (run_id, node, seq, at, source, kind, name, unit, value, counter, error)
VALUES (@run_id, @node, @seq, @at, @source, @kind, @name, @unit, @value, @counter, @error);
