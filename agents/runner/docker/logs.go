package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"linktrial/agents/runner"
	"linktrial/protocols/contract"
)

// logsInside is where a container has the folder for logs of transfers.
const logsInside = "/linktrial-logs"

// logsDir is the folder of [Config.StateDir] that has one for each container.
const logsDir = "container-logs"

// removeLogs removes what containers of an agent that crashed left.
func removeLogs(state string) error {
	if state == "" {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(state, logsDir)); err != nil {
		return fmt.Errorf("logs left by an earlier agent: %w", err)
	}
	return nil
}

// logsFolder makes a folder that a container gets for its logs; "" where it gets
// none: there is no state folder, or the engine does not see it, as where this
// process is a container itself.
func (r *Runner) logsFolder(p *contract.Parameters) (string, error) {
	if r.cfg.StateDir == "" || r.hidden.Load() || p.Role != contract.RoleClient && p.Role != contract.RoleServer {
		return "", nil
	}
	parent := filepath.Join(r.cfg.StateDir, logsDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return "", err
	}
	// The image says as which user the driver runs; nobody else reaches the parent.
	if err := os.Chmod(dir, 0o777); err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// mountLogs gives a container its folder. No file becomes larger than the contract
// has it: a driver must not fill the node's disk.
func mountLogs(host *container.HostConfig, dir string) {
	if dir == "" {
		return
	}
	const most = contract.MaxLogFile + 1<<20
	host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeBind, Source: dir, Target: logsInside})
	host.Ulimits = append(host.Ulimits, &container.Ulimit{Name: "fsize", Soft: most, Hard: most})
}

// isHidden reports whether the engine refused a container because it does not see
// the folders of this process.
func isHidden(err error) bool {
	return errdefs.IsInvalidArgument(err) && strings.Contains(err.Error(), "bind source path does not exist")
}

// keepLogs moves the logs that a container left to where they are kept, and removes
// its folder. What does not bear the name of a log is not kept.
func (d *driver) keepLogs() error {
	if d.logs == "" {
		return nil
	}
	defer os.RemoveAll(d.logs)
	d.mu.Lock()
	keep := d.keep
	d.mu.Unlock()
	if keep == "" {
		return nil
	}
	found, err := os.ReadDir(d.logs)
	if err != nil {
		return err
	}
	for _, f := range found {
		if !f.Type().IsRegular() || !runner.LogName(f.Name()) {
			continue
		}
		from := filepath.Join(d.logs, f.Name())
		if err := os.Chown(from, os.Geteuid(), os.Getegid()); err != nil {
			return err
		}
		if err := os.Chmod(from, 0o644); err != nil {
			return err
		}
		if err := os.Rename(from, filepath.Join(keep, f.Name())); err != nil {
			return fmt.Errorf("log of a container: %w", err)
		}
	}
	return nil
}
