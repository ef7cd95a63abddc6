// Package confine starts processes with less than their parent may: as a user of
// their own, with named capabilities alone and no way to get more, with a
// temporary folder of their own, and with a Landlock rule that names the files
// which they may reach. Linux only.
// Comes in: a command and what it needs. Goes out: a running process, and which
// parts of the confinement are active. Imports internal/process.
package confine

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"linktrial/internal/process"
)

// Need is what a process needs beyond what every confined process reaches.
type Need struct {
	Program      string   // absolute path
	Folder       string   // its working folder
	Reads        []string // files and folders that it reads; absent ones are passed over
	Writes       []string // folders that it writes to; absent ones are passed over
	User         uint32   // number of the user that it runs as; 0: the machine's choice
	Group        uint32   // number of the group that it runs in, where this process may say so; 0: the user's
	Capabilities []string // as "CAP_NET_ADMIN", and no others; those that this process lacks are passed over
	Network      string   // file of the network namespace that it runs in; empty: this process's own
}

// Process is a confined process's surroundings.
type Process struct {
	// Temp is its temporary folder; it is also its home.
	Temp  string
	user  User
	group uint32
	level string
}

// Level words which parts of the confinement are active.
func (p *Process) Level() string { return p.level }

// Changed reports whether the process runs as another user than its parent.
func (p *Process) Changed() bool { return p.user.changed }

// Group is the number of the group that the process runs in.
func (p *Process) Group() uint32 { return p.group }

// Start starts cmd confined: [process.Start] with less. The caller calls [Process.Remove]
// when the process has ended. The environment's HOME and TMPDIR are set.
func Start(cmd *exec.Cmd, need Need) (*Process, error) {
	who, temp, err := choose(need)
	if err != nil {
		return nil, err
	}
	p := &Process{Temp: temp, user: who}
	need.Writes = append(slices.Clone(need.Writes), temp)
	rules, err := newRuleset(need, who)
	if err != nil {
		p.Remove()
		return nil, err
	}
	defer rules.close()
	granted := granted(need.Capabilities)
	cmd.Env = append(slices.DeleteFunc(slices.Clone(cmd.Env), func(v string) bool {
		return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "TMPDIR=")
	}), "HOME="+temp, "TMPDIR="+temp)
	kept := numbers(granted)
	attr := &syscall.SysProcAttr{AmbientCaps: kept}
	var changing []uintptr // needed until the user has been changed, which takes them away
	p.group = who.GID
	if need.Group != 0 && changes() && mapped("/proc/self/gid_map", need.Group) {
		p.group = need.Group
	}
	if who.changed || p.group != who.GID {
		changing = []uintptr{unix.CAP_SETUID, unix.CAP_SETGID}
		attr.Credential = &syscall.Credential{Uid: who.UID, Gid: p.group}
	}
	cmd.SysProcAttr = attr
	err = process.StartOnThread(cmd, func() error {
		if err := process.EnterNamespace(need.Network); err != nil {
			return err
		}
		return restrict(rules, kept, changing)
	})
	if err != nil {
		p.Remove()
		if os.IsPermission(err) || rules.active() && os.IsNotExist(err) && exists(need.Program) {
			return nil, fmt.Errorf("%w: a confined driver is started as %s and may execute files of the system and of its own folder %s: let that user read and execute them, install the driver in /usr/lib/linktrial/drivers, or start the agent with --driver-reads FOLDER for an interpreter elsewhere", err, who, need.Folder)
		}
		return nil, err
	}
	p.level = describe(who, granted, rules.abi)
	return p, nil
}

// forFiles are the capabilities with which user 0 reaches everybody's files.
var forFiles = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER"}

// StartBare starts cmd in a network namespace (a file, "" for the caller's own) with the
// capabilities that [Start] would give it. Otherwise it is its caller's, and as its user
// reaches the files that the caller reaches, where cmd has no other one. The caller calls
// [process.Forget] when it has been waited for.
func StartBare(cmd *exec.Cmd, netns string, capabilities []string) error {
	granted := granted(capabilities)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if who := cmd.SysProcAttr.Credential; who == nil || who.Uid == 0 {
		for _, c := range forFiles {
			if held(capabilityNames[c]) {
				granted = append(granted, c)
			}
		}
	}
	kept := numbers(granted)
	cmd.SysProcAttr.AmbientCaps = kept
	var changing []uintptr
	if cmd.SysProcAttr.Chroot != "" || cmd.SysProcAttr.Credential != nil {
		changing = []uintptr{unix.CAP_SYS_CHROOT, unix.CAP_SETUID, unix.CAP_SETGID}
	}
	return process.StartOnThread(cmd, func() error {
		if err := process.EnterNamespace(netns); err != nil {
			return err
		}
		return restrict(&ruleset{}, kept, changing)
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// describe words a confinement.
func describe(who User, capabilities []string, abi int) string {
	parts := []string{who.String(), "no capabilities", "no new privileges", "own temporary folder", "no Landlock in this kernel"}
	if len(capabilities) > 0 {
		parts[1] = "only " + strings.Join(capabilities, ", ")
	}
	if abi > 0 {
		parts[4] = fmt.Sprintf("Landlock ABI %d", abi)
	}
	return strings.Join(parts, "; ")
}

// restrict takes from the calling thread what a process that it starts is not to
// have. It never gets it back: the thread ends with that process.
func restrict(rules *ruleset, granted, changing []uintptr) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confine: no new privileges: %w", err)
	}
	// What the process is to have is raised again one by one (SysProcAttr.AmbientCaps).
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("confine: clear ambient capabilities: %w", err)
	}
	if os.Geteuid() == 0 {
		// User 0 would get every capability of the bounding set at execve(2)
		// (capabilities(7), SECBIT_NOROOT), with no_new_privs all that this thread has.
		const noRoot, locked = 1 << 0, 1 << 1
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|locked, 0, 0, 0); err != nil {
			// Without CAP_SETPCAP, as in some containers: the thread keeps no more.
			if err := keepOnly(granted, changing); err != nil {
				return err
			}
		}
	}
	return rules.enforce()
}

// keepOnly takes all but these capabilities from the calling thread; granted ones can be
// passed on.
func keepOnly(granted, changing []uintptr) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for _, c := range append(changing, granted...) {
		if held(c) {
			data[c/32].Permitted |= 1 << (c % 32)
			data[c/32].Effective |= 1 << (c % 32)
		}
	}
	for _, c := range granted {
		data[c/32].Inheritable |= 1 << (c % 32)
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("confine: give up capabilities: %w", err)
	}
	return nil
}
