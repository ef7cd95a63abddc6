package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"linktrial/internal/confine"
	"linktrial/protocols/contract"
)

// logName is what a driver may call a log (driver contract, P14).
var logName = regexp.MustCompile(`^[0-9a-f]{32}\.(client|server)\.[A-Za-z0-9]{1,16}$`)

// LogName reports whether a file bears the name that the driver contract has for a log
// of a transfer.
func LogName(name string) bool { return logName.MatchString(name) }

// logsFolder is what the folder for logs is called in a driver's temporary folder.
const logsFolder = "logs"

// startConfined starts a driver with less than this process may, and names to it the
// folder for logs that it reaches.
func (r *Runner) startConfined(d *driver, m *contract.Manifest, p *contract.Parameters) (err error) {
	need := confine.Need{Program: d.cmd.Path, Folder: d.cmd.Dir, Reads: r.cfg.DriverReads, User: r.cfg.DriverUser, Capabilities: m.Capabilities}
	if p.LogFolder != "" {
		need.Writes = []string{p.LogFolder}
	}
	if r.cfg.RadioOnly != nil && r.cfg.RadioOnly.Holds(p) {
		if err := r.cfg.RadioOnly.Hold(p); err != nil {
			r.unheld.Do(func() { r.cfg.Logger.Warn("drivers reach what this node reaches", "error", err) })
		} else {
			need.Group = r.cfg.RadioOnly.Group()
		}
	}
	if d.confined, err = confine.Start(d.cmd, need); err != nil {
		return err
	}
	d.held = need.Group != 0 && d.confined.Group() == need.Group
	if d.confined.Changed() && p.LogFolder != "" {
		// That user does not reach the agent's folders.
		if d.logs, err = d.confined.MakeFolder(logsFolder); err != nil {
			r.cfg.Logger.Warn("a driver gets no folder for logs", "protocol", m.Name, "error", err)
		}
		d.keep, p.LogFolder = p.LogFolder, d.logs
	}
	return nil
}

// Confinement words which parts of the confinement are active for the driver; "": none.
func (d *driver) Confinement() string {
	if d.confined == nil {
		return ""
	}
	level := d.confined.Level()
	if d.held {
		level += "; the radio's network alone"
	}
	return level
}

// keepLogs copies the logs that a driver of another user has written to where they are
// kept. What does not bear the name of a log is not kept.
func (d *driver) keepLogs() {
	if d.logs == "" {
		return
	}
	entries, err := d.confined.List(d.logs)
	for _, e := range entries {
		if LogName(e.Name()) {
			err = errors.Join(err, d.keepLog(e.Name()))
		}
	}
	if err != nil {
		d.logger.Warn("logs of a driver could not be kept", "error", err)
	}
}

func (d *driver) keepLog(name string) error {
	from, err := d.confined.Open(filepath.Join(d.logs, name))
	if err != nil {
		return err
	}
	defer from.Close()
	if st, err := from.Stat(); err != nil || !st.Mode().IsRegular() {
		return err // a pipe or a device is no log
	}
	to, err := os.OpenFile(filepath.Join(d.keep, name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("log of a driver: %w", err)
	}
	_, err = io.Copy(to, io.LimitReader(from, contract.MaxLogFile+1<<20))
	if cerr := to.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("log of a driver: %w", err)
	}
	return nil
}
