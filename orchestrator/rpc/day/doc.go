// Package day closes a day: it audits and exports the campaigns that ended on it, and
// makes one archive of that, with a backup where an admin asks for it. Comes in: a date,
// the results as their service exports them. Goes out: a summary, and an archive on disk
// that is sent as a file.
//
// Its files, from the bottom up: span.go (which moments a day has), archive.go (the file),
// readme.go (what the archive says of itself), closing.go (the work), day.go (the service).
// Where the archive is kept until it is fetched is in rpc/shelf.
package day
