-- name: ConformanceResults :many
SELECT * FROM conformance ORDER BY driver;

-- name: KeepConformance :exec
INSERT INTO conformance (driver, version, sha256, checked_at, checks) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (driver) DO UPDATE SET version = excluded.version, sha256 = excluded.sha256, checked_at = excluded.checked_at, checks = excluded.checks;
