// Package backup writes an orchestrator's store and keys into one file, also
// while the orchestrator works, and brings them back into an empty data folder or
// database. Comes in: a data folder or the URL of a database, a file. Goes out:
// the other one.
//
// The file is a tar with gzip:
//
//	linktrial-backup/manifest.json
//	linktrial-backup/files/…      keys of the authority and of run sheets, topologies that people saved
//	linktrial-backup/store.dump   the database, as pg_dump's custom format
package backup
