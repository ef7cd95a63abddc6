-- name: UpsertNode :exec
INSERT INTO nodes (name, role, version, host, kernel, radio, emulated, radio_address, disk_free_bytes, drivers, incarnation, virtual, lab, lab_problem, registered_at, last_contact_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, now(), now())
ON CONFLICT (name) DO UPDATE SET role = excluded.role, version = excluded.version, host = excluded.host, kernel = excluded.kernel,
    radio = excluded.radio, emulated = excluded.emulated, radio_address = excluded.radio_address,
    disk_free_bytes = excluded.disk_free_bytes, drivers = excluded.drivers, incarnation = excluded.incarnation, virtual = excluded.virtual,
    lab = excluded.lab, lab_problem = excluded.lab_problem,
    -- When this start of the agent was first heard of.
    registered_at = CASE WHEN nodes.incarnation = excluded.incarnation THEN nodes.registered_at ELSE excluded.registered_at END,
    last_contact_at = now();
