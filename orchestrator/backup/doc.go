// Package backup writes an orchestrator's store and keys into one file, also
// while the orchestrator works, and brings them back into an empty data folder or
// database. Comes in: a data folder or the URL of a database, a file. Goes out:
// the other one.
//
// The file is a tar with gzip:
//
//	linktrial-backup/manifest.json   what is in it, with the SHA-256 of each file
//	linktrial-backup/manifest.sig    its signature by the key that signs run sheets
//	linktrial-backup/files/…      keys of the authority and of run sheets, topologies and radio profiles that people saved
//	linktrial-backup/data/TABLE.copy.gz   the rows of a table, as COPY writes them
//
// A restore makes the schema from the program's own migrations and reads rows: it
// executes nothing of the file.
package backup
