// Package migrations is the database's schema, as numbered SQL that only goes
// forward. Comes in: nothing. Goes out: the files, for goose.
package migrations

import "embed"

// Files holds every migration.
//
//go:embed *.sql
var Files embed.FS
