package process

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// PreferSession gives all processes of this process's session together the share of the
// processors that one process of that nice value (-20 to 19) has. Linux with automatic
// groups (sched(7), CONFIG_SCHED_AUTOGROUP) divides the processors among sessions
// first, so that there a nice value only counts within one.
//
// It returns an error where this process does not lead its session, because the value
// would then be that of a user's terminal too, where the kernel has no such groups, and
// where they may not be changed (values below 0 need CAP_SYS_NICE).
func PreferSession(nice int) error {
	if sid, err := unix.Getsid(0); err != nil || sid != os.Getpid() {
		return fmt.Errorf("process %d does not lead its session", os.Getpid())
	}
	return setSessionNice("self", nice)
}

func setSessionNice(process string, nice int) error {
	return os.WriteFile("/proc/"+process+"/autogroup", []byte(strconv.Itoa(nice)), 0o644)
}

// StartBackground is [Start] for a computation that can wait: in a session of its own,
// which gives way to every other one. Sessions and processes have the nice value given
// (0 to 19), because which of the two counts depends on the kernel (see [PreferSession]).
func StartBackground(cmd *exec.Cmd, nice int) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := Start(cmd); err != nil {
		return err
	}
	// Without it the computation only takes more from others.
	_ = setSessionNice(strconv.Itoa(cmd.Process.Pid), nice)
	_ = unix.Setpriority(unix.PRIO_PGRP, cmd.Process.Pid, nice)
	return nil
}

// ticksPerSecond is the unit of times in /proc: USER_HZ, 100 on every architecture that
// Linktrial runs on.
const ticksPerSecond = 100

// GroupTime returns the processor time that the processes of a group have used, with that
// of children which they have waited for.
func GroupTime(group int) (time.Duration, error) {
	members, err := groupOf(group)
	var ticks uint64
	for _, s := range members {
		ticks += s.used
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, err
}

// GroupRuns reports whether a group has a process that has not ended. One that has, and
// that nobody has waited for, still has its number and could be signalled: where the
// machine's first process waits for none, as in some containers, orphans stay so.
func GroupRuns(group int) bool {
	if syscall.Kill(-group, 0) != nil {
		return false
	}
	members, err := groupOf(group)
	return err != nil || slices.ContainsFunc(members, func(s stat) bool { return s.state != 'Z' && s.state != 'X' })
}

func groupOf(group int) (members []stat, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// One that has ended since the folder was read is no error.
		if s, err := readStat(pid); err == nil && s.group == group {
			members = append(members, s)
		}
	}
	return members, nil
}
