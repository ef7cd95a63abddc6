package agent

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/service"
	"linktrial/internal/wallclock"
)

// aliveFile is of the run's folder. It has the identity of the node's start, and its time
// of change is how long after that the run was last executed, counted from 1970: the
// node's clock may step.
const aliveFile = "alive"

// aliveEvery is how often that time is noted.
const aliveEvery = time.Second

// keepAlive notes that the run is being executed, until stop or the end of the
// process; before is when an earlier start noted it last, zero where none did.
func (r *run) keepAlive(ctx context.Context, j *journal.File) (before time.Time, stop func()) {
	path, boot := filepath.Join(r.dir, aliveFile), r.node.cfg.boot()
	if info, err := os.Stat(path); err == nil {
		of, err := os.ReadFile(path)
		before = aliveAt(info.ModTime(), string(of), boot, j)
		if err != nil {
			before = time.Time{}
		}
	}
	if err := os.WriteFile(path, []byte(boot), 0o644); err != nil {
		r.log.Warn("that the run is executed cannot be noted", "error", err)
		return before, func() {}
	}
	return before, service.Go(ctx, func(ctx context.Context) {
		for {
			at := time.Unix(0, int64(wallclock.Steady()))
			_ = os.Chtimes(path, at, at) // without it, the journal's last record is taken
			if !backoff.Sleep(ctx, aliveEvery) {
				return
			}
		}
	})
}

// aliveAt is when a run was executed last, of what its file has. Within this start of the
// node it has a monotonic reading, so that the journal gives it the time of its clock as
// it is then; of an earlier one it is by the clock of that. A file without an identity is
// of an earlier version: its time is one of day.
func aliveAt(changed time.Time, of, boot string, j *journal.File) time.Time {
	since := time.Duration(changed.UnixNano())
	switch {
	case of == "":
		return changed
	case of == boot && since > wallclock.Steady():
		return time.Time{} // ended before it noted a time
	case of == boot:
		return time.Now().Add(since - wallclock.Steady())
	}
	return j.Time(since)
}
