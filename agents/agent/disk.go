package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/service"
	"linktrial/internal/unit"
)

// diskFailed reports whether an error is the disk's: it may work again, after somebody
// has made room, or by itself.
func diskFailed(err error) bool {
	for _, e := range []error{journal.ErrDiskFull, unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// outlastsDisk reports whether the run waits for a disk that has failed: where an
// orchestrator can tell people of it.
func (r *run) outlastsDisk() bool { return r.node.session != nil }

// whileDiskWorks executes the run until the disk fails, and returns that then.
func (r *run) whileDiskWorks(ctx context.Context, j *journal.File, execute func(context.Context) error) error {
	if !r.outlastsDisk() {
		return execute(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := service.Go(ctx, func(ctx context.Context) {
		select {
		case <-j.Failed():
			cancel(j.Failure())
		case <-ctx.Done():
		}
	})
	err := execute(ctx)
	stop()
	if failure := j.Failure(); failure != nil {
		return failure
	}
	return err
}

// Pauses between two looks at a disk that has failed.
const (
	diskPause    = 200 * time.Millisecond
	diskPauseMax = 2 * time.Second
)

// awaitDisk blocks until the disk of the state folder works again and has the room
// that a run needs, or until ctx ends; meanwhile the orchestrator shows why.
func (r *run) awaitDisk(ctx context.Context, failed error) error {
	r.log.Error("the run waits: its journal cannot be written", "error", failed)
	began := time.Now()
	var told fault
	defer func() { r.node.removeFault(told) }()
	for pause := (backoff.Backoff{Min: diskPause, Max: diskPauseMax}); ; {
		err := checkDisk(r.dir, r.node.cfg.FloorBytes)
		if err == nil {
			r.log.Info("the disk works again; the run continues", "seconds", time.Since(began).Seconds())
			return nil
		}
		f := fault{text: fmt.Sprintf("run %s waits for this node: its journal cannot be written (%v); the run continues when that is repaired", r.id, err)}
		if told != f {
			r.node.removeFault(told)
			r.node.addFault(f)
			told = f
		}
		if !pause.Wait(ctx) {
			return ctx.Err()
		}
	}
}

// checkDisk writes, syncs and reads a small file in a folder, and returns why a run
// cannot go on there.
func checkDisk(dir string, floor int64) error {
	free, err := journal.FreeBytes(dir)
	if err != nil {
		return err
	}
	// A journal that is opened takes its reserve first.
	if need := max(floor, 0) + journal.DefaultReserve; free < need {
		return fmt.Errorf("%w: %s are left, %s are needed: make room in %s", journal.ErrDiskFull, unit.FormatBytes(free&^1023), unit.FormatBytes(need), dir)
	}
	path := filepath.Join(dir, "disk-check")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	b := []byte("written to see whether the disk works\n")
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		_, err = f.ReadAt(b, 0)
	}
	return errors.Join(err, f.Close(), os.Remove(path))
}
