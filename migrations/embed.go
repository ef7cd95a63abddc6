// Package migrations is the database's schema, as numbered SQL that only goes
// forward. Comes in: nothing. Goes out: the files, for goose, and which numbers
// are those of databases that this schema does not continue.
package migrations

import "embed"

// Files holds every migration.
//
//go:embed *.sql
var Files embed.FS

// Baseline is the number of the first migration, which makes the whole schema.
const Baseline = 1

// lastRetired is the last number that builds before the baseline gave to a migration of
// theirs. The next migration here is the one after it.
const lastRetired = 43

// Retired reports whether a database whose newest migration has this number was made by a
// build before the baseline. Nothing brings such a database up to date.
func Retired(number int64) bool { return number > Baseline && number <= lastRetired }
