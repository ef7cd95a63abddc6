package installation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/unit"
)

// agentUser is the user of the agent, who reads the token.
const agentUser = "linktrial-agent"

// users are those that a package adds for the services.
var users = []string{"linktrial", agentUser, "linktrial-driver"}

// ErrNoSystemd says that the machine was not booted by systemd.
var ErrNoSystemd = errors.New("this machine was not started by systemd, which would keep the services running")

// Free disk space that is needed: an orchestrator's database has some hundred MiB before the
// first run; a node's agent leaves some to others, and starts no trial below that.
const (
	MinFreeBytes     = 1 << 30   // of a start
	MinNodeFreeBytes = 256 << 20 // of a node that joins
)

// clockSlack is how far a clock may be behind the files of the package: their times are of
// the build, and zones and slow clocks differ by less.
const clockSlack = 25 * time.Hour

// Check returns the first thing that a start needs and the machine does not have, free disk
// space aside, with what to do, in one sentence; now is the machine's time of day.
func (m *Machine) Check(ctx context.Context, now time.Time) error {
	// As sd_booted(3) finds it out.
	if _, err := os.Stat(m.at("/run/systemd/system")); err != nil {
		return ErrNoSystemd
	}
	if err := m.checkInstalled(ctx); err != nil {
		return err
	}
	return m.checkClock(now)
}

// CheckFree refuses folders of the data whose disk has too little free space, in bytes, with a
// [LittleFree].
func (m *Machine) CheckFree(want int64) error {
	for _, folder := range []string{OrchestratorData, AgentData} {
		if err := CheckFree(m.at(folder), want); err != nil {
			return err
		}
	}
	return nil
}

// LittleFree is a disk with too little free space.
type LittleFree struct {
	Folder     string
	Free, Want int64 // bytes
}

// Text says how much is free, without what to do.
func (e *LittleFree) Text() string {
	return fmt.Sprintf("%s has %s free, expected %s", e.Folder, unit.FormatBytes(e.Free&^(1<<20-1)), unit.FormatBytes(e.Want))
}

func (e *LittleFree) Error() string {
	return e.Text() + ": make room, or mount a larger disk there, and try again"
}

// CheckFree refuses a folder whose disk has too little free space, in bytes, with a
// [LittleFree]. One that is not there yet will be on the disk of the folder above.
func CheckFree(folder string, want int64) error {
	var fsys unix.Statfs_t
	err := unix.Statfs(folder, &fsys)
	for errors.Is(err, fs.ErrNotExist) && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder)
		err = unix.Statfs(folder, &fsys)
	}
	if err != nil {
		return fmt.Errorf("free disk space of %s: %w", folder, err)
	}
	if free := int64(fsys.Bavail) * fsys.Bsize; free < want {
		return &LittleFree{folder, free, want}
	}
	return nil
}

// Installed reports whether a package has installed Linktrial's services on this machine.
func (m *Machine) Installed(ctx context.Context) bool {
	if _, err := os.Stat(m.at("/run/systemd/system")); err != nil {
		return false
	}
	u, err := m.Manager.Unit(ctx, AgentUnit)
	return err == nil && u.Loaded
}

// checkInstalled reports what a package would have installed and is not there.
func (m *Machine) checkInstalled(ctx context.Context) error {
	for _, name := range []string{OrchestratorUnit, AgentUnit} {
		u, err := m.Manager.Unit(ctx, name)
		if err != nil {
			return err
		}
		if !u.Loaded {
			return fmt.Errorf("%s is not installed: install Linktrial's package (dpkg -i linktrial_….deb), and start again", name)
		}
	}
	for _, name := range users {
		if _, err := m.user(name); err != nil {
			return err
		}
	}
	return nil
}

// user returns the number of a user of the package.
func (m *Machine) user(name string) (int, error) {
	f, err := os.Open(m.at("/etc/passwd"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// name:password:uid:… (passwd(5))
		if fields := strings.Split(lines.Text(), ":"); len(fields) > 2 && fields[0] == name {
			return strconv.Atoi(fields[2])
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("/etc/passwd: %w", err)
	}
	return 0, fmt.Errorf("there is no user %s: install Linktrial's package again (dpkg -i linktrial_….deb), and start again", name)
}

// checkClock refuses a time of day before the program was made: certificates would not be
// valid yet, or no longer, once the clock is set.
func (m *Machine) checkClock(now time.Time) error {
	st, err := os.Stat(m.at(program))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not installed: install Linktrial's package (dpkg -i linktrial_….deb), and start again", program)
	}
	if err != nil {
		return err
	}
	if made := st.ModTime(); now.Before(made.Add(-clockSlack)) {
		return fmt.Errorf("this machine's clock says %s, and the program was made on %s: set the clock (timedatectl set-time), and start again", unit.Moment(now), unit.Moment(made))
	}
	return nil
}
