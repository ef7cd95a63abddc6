package installation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Manager is the service manager of a machine. Its methods may be called from several
// goroutines.
type Manager interface {
	// Enable has a unit started at every boot, Disable not.
	Enable(ctx context.Context, unit string) error
	Disable(ctx context.Context, unit string) error
	// Start and Restart return before the unit is ready, Stop when it has ended.
	Start(ctx context.Context, unit string) error
	Restart(ctx context.Context, unit string) error
	Stop(ctx context.Context, unit string) error
	// Unit returns the state of a unit, also of one that it does not know.
	Unit(ctx context.Context, unit string) (Unit, error)
}

// Unit is the state of a service.
type Unit struct {
	Loaded  bool   // the service manager knows it
	Enabled bool   // it is started at every boot
	Active  string // "active", "activating", "reloading", "deactivating", "inactive" or "failed", as systemd has it
	Status  string // what the service says of itself; can be empty
	Since   time.Time
	// Restarts is how often it was started again because it had ended.
	Restarts int
}

// Running reports whether the service works or begins to.
func (u *Unit) Running() bool {
	return u.Active == "active" || u.Active == "activating" || u.Active == "reloading"
}

// Systemd is systemd, by its program systemctl.
type Systemd struct {
	Program string // empty: systemctl, in PATH
}

// Enable implements [Manager].
func (s *Systemd) Enable(ctx context.Context, unit string) error { return s.call(ctx, "enable", unit) }

// Disable implements [Manager].
func (s *Systemd) Disable(ctx context.Context, unit string) error {
	return s.call(ctx, "disable", unit)
}

// Start implements [Manager].
func (s *Systemd) Start(ctx context.Context, unit string) error {
	return s.call(ctx, "--no-block", "start", unit)
}

// Restart implements [Manager].
func (s *Systemd) Restart(ctx context.Context, unit string) error {
	return s.call(ctx, "--no-block", "restart", unit)
}

// Stop implements [Manager].
func (s *Systemd) Stop(ctx context.Context, unit string) error { return s.call(ctx, "stop", unit) }

func (s *Systemd) call(ctx context.Context, args ...string) error {
	_, err := s.output(ctx, args...)
	return err
}

// output runs systemctl. Its error has what that said.
func (s *Systemd) output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, cmp.Or(s.Program, "systemctl"), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, ErrNoSystemd
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, cmp.Or(strings.Join(strings.Fields(errs.String()), " "), "it said nothing"))
	}
	return out.Bytes(), nil
}

// Unit implements [Manager].
func (s *Systemd) Unit(ctx context.Context, unit string) (Unit, error) {
	b, err := s.output(ctx, "show", "--timestamp=unix", "--property=LoadState,UnitFileState,ActiveState,StatusText,ActiveEnterTimestamp,NRestarts", unit)
	if err != nil {
		return Unit{}, err
	}
	return parseUnit(string(b))
}

// parseUnit reads the properties that 'systemctl show' prints, KEY=VALUE in a line each.
func parseUnit(text string) (u Unit, err error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch key {
		case "LoadState":
			u.Loaded = value == "loaded"
		case "UnitFileState":
			u.Enabled = value == "enabled"
		case "ActiveState":
			u.Active = value
		case "StatusText":
			u.Status = value
		case "ActiveEnterTimestamp":
			if text, ok := strings.CutPrefix(value, "@"); ok {
				seconds, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					return Unit{}, fmt.Errorf("systemctl show: %s=%.40q, expected @ and seconds", key, value)
				}
				u.Since = time.Unix(seconds, 0)
			}
		case "NRestarts":
			if u.Restarts, err = strconv.Atoi(value); err != nil {
				return Unit{}, fmt.Errorf("systemctl show: %s=%.40q, expected a number", key, value)
			}
		}
	}
	if u.Active == "" {
		return Unit{}, errors.New("systemctl show: no ActiveState, expected one")
	}
	return u, nil
}
