// Package shelf is what the services share that make an archive on the orchestrator's disk:
// where it is kept until it is fetched, how far the work is, and the exported files that go
// into it. Comes in: work, and what it is of. Goes out: a file that who has its key can fetch
// over HTTP for an hour.
//
// Its files, from the bottom up: progress.go (how much is done, and how long the rest takes),
// export.go (a campaign's files of results), shelf.go (the folder, and until when its archive
// is kept), work.go (the work for one caller, who may leave).
package shelf
