package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"linktrial/internal/faultdisk"
	"linktrial/internal/faultlog"
	"linktrial/internal/process"
	"linktrial/lab/faults"
	"linktrial/orchestrator/postgres"
)

// databaseDisk starts orchestrators for whom a file system that can be full lies over
// the folder of their database. It is in their mount namespace alone, and so goes with
// the last of their processes, however the rehearsal ends.
type databaseDisk struct {
	path string

	mu   sync.Mutex
	disk *faultdisk.Disk // of the orchestrator that was started last
	pid  int
}

// start starts an orchestrator.
func (d *databaseDisk) start(cmd *exec.Cmd) error {
	var disk *faultdisk.Disk
	err := process.StartOnThread(cmd, func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("mount namespace for the database: %w", err)
		}
		// What is mounted from here on stays here; what is removed outside goes here, too.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
			return fmt.Errorf("mount namespace for the database: %w", err)
		}
		var err error
		disk, err = faultdisk.Mount(d.path)
		return err
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pid != 0 {
		process.Forget(d.pid)
	}
	// The disk of the one before is not closed: a PostgreSQL that is just being killed
	// may still use it.
	d.disk, d.pid = disk, cmd.Process.Pid
	return nil
}

// current returns the disk of the orchestrator that was started last; nil where there
// is none.
func (d *databaseDisk) current() *faultdisk.Disk {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.disk
}

// hold keeps an orchestrator that ended from being started again. The zero value is
// ready, and keeps none.
type hold struct {
	mu       sync.Mutex
	released chan struct{} // closed by set(false); nil: nothing is held
}

func (h *hold) set(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case on && h.released == nil:
		h.released = make(chan struct{})
	case !on && h.released != nil:
		close(h.released)
		h.released = nil
	}
}

// wait blocks while something is held, and until ctx ends.
func (h *hold) wait(ctx context.Context) error {
	h.mu.Lock()
	released := h.released
	h.mu.Unlock()
	if released == nil {
		return ctx.Err()
	}
	select {
	case <-released:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// startOrchestrator starts the rehearsal's own orchestrator; with faults, one that can
// be kept from being started again and leaves in the database what faults put there, and
// where a fault is to fill the disk of its database, on one that can be full.
func (r *rehearsal) startOrchestrator(ctx context.Context, log *os.File) (*Orchestrator, error) {
	path := filepath.Join(r.s.Data, postgres.Folder)
	if r.schedule == nil {
		return StartOrchestrator(ctx, r.s, r.s.Data, log, r.log)
	}
	start := process.Start
	if r.schedule.Injects(faultlog.DatabaseFull) {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			// A new database is made beside its folder and renamed to it, so nothing may lie
			// over the folder yet.
			o, err := StartOrchestrator(ctx, r.s, r.s.Data, log, r.log)
			if err != nil {
				return nil, err
			}
			o.Stop(ctx)
		} else if err != nil {
			return nil, err
		}
		r.databaseDisk = &databaseDisk{path: path}
		start = r.databaseDisk.start
	}
	if _, err := faults.RestoreDatabase(path); err != nil { // an earlier campaign's
		return nil, err
	}
	return startOrchestrator(ctx, r.s, r.s.Data, log, r.log, func(ctx context.Context, cmd *exec.Cmd) error {
		if err := r.hold.wait(ctx); err != nil {
			return err
		}
		cmd.Env = append(cmd.Environ(), faults.CampaignVariable+"=1")
		return start(cmd)
	})
}
