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
)

// privateDatabase is the folder of the orchestrator's PostgreSQL in its data folder.
const privateDatabase = "postgres"

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

// startOrchestrator starts the rehearsal's own orchestrator; where a fault is to fill
// the disk of its database, on one that can be full.
func (r *rehearsal) startOrchestrator(ctx context.Context, log *os.File) (*Orchestrator, error) {
	if r.schedule == nil || !r.schedule.Injects(faultlog.DatabaseFull) {
		return StartOrchestrator(ctx, r.s, r.s.Data, log, r.log)
	}
	path := filepath.Join(r.s.Data, privateDatabase)
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
	return startOrchestrator(ctx, r.s, r.s.Data, log, r.log, r.databaseDisk.start)
}
