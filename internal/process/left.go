package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leftGrace is the time that what a process has started may take to end after
// it: a pipeline's last program, for example.
const leftGrace = 50 * time.Millisecond

// started are the children that [StartIn] and [StartOnThread] have started and nobody
// has forgotten.
var started struct {
	sync.Mutex
	children map[int]child
}

type child struct {
	mark      uint64          // what its descendants inherit; 0: nothing
	forgotten chan<- struct{} // closed when it is forgotten; nil where nobody waits
}

// marks gives numbers to children. What a child starts, and what that starts, is told
// from what others start by the soft limit of RLIMIT_LOCKS: every descendant inherits
// it, in whatever session and with whatever environment, every user reads it in /proc,
// and no kernel since 2.4.25 obeys it (getrlimit(2)).
var marks struct {
	sync.Mutex
	last uint64
}

// startMarked starts a child by start with a mark that no other has, and remembers it.
func startMarked(cmd *exec.Cmd, start func() error, forgotten chan<- struct{}) error {
	marks.Lock()
	defer marks.Unlock() // this process has the child's limit while it starts it
	marks.last++
	mark := 1<<62 | uint64(os.Getpid())<<32 | marks.last&(1<<32-1)
	var own unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_LOCKS, &own)
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: mark, Max: own.Max})
	}
	if err != nil {
		mark = 0 // a hard limit is in the way
	} else {
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_LOCKS, &own) }() // back to what it was
	}
	if err := start(); err != nil {
		return err
	}
	started.Lock()
	defer started.Unlock()
	if started.children == nil {
		started.children = map[int]child{}
	}
	started.children[cmd.Process.Pid] = child{mark, forgotten}
	return nil
}

func remembered(pid int) (c child, is bool) {
	started.Lock()
	defer started.Unlock()
	c, is = started.children[pid]
	return c, is
}

// markOf is the mark that a process has inherited; 0: none.
func markOf(pid int) uint64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0
	}
	const limit = "Max file locks"
	for line := range strings.Lines(string(b)) {
		if after, is := strings.CutPrefix(line, limit); is {
			soft, _, _ := strings.Cut(strings.TrimSpace(after), " ")
			mark, err := strconv.ParseUint(soft, 10, 64)
			if err != nil {
				return 0 // "unlimited"
			}
			return mark
		}
	}
	return 0
}

// Adopt makes this process the parent of all that its children leave behind when
// they end, so that [EndLeft] finds it (prctl(2), PR_SET_CHILD_SUBREAPER).
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphaned processes: %w", err)
	}
	return nil
}

// EndLeft kills what a child of this process has left behind, and names it. The
// child was started by [Start], has ended, and was not waited for, so that its number
// is still its own. It takes no time where nothing is left, else as long as leftGrace.
func EndLeft(pid int) (names []string) {
	ended, err := readStat(pid)
	if err != nil {
		return nil
	}
	left := orphans(&ended)
	if len(left) == 0 {
		return nil
	}
	time.Sleep(leftGrace)
	for _, o := range orphans(&ended) {
		// One that is new may be a child that is being started and not remembered yet.
		if slices.ContainsFunc(left, func(l stat) bool { return l.pid == o.pid && l.start == o.start }) {
			names = append(names, fmt.Sprintf("%s (process %d)", o.command(), o.pid))
			o.end()
		}
	}
	return names
}

// end kills an orphan and waits until it has gone, a second at most.
func (s *stat) end() {
	_ = syscall.Kill(s.pid, syscall.SIGKILL) // fails where it has just ended
	for range 200 {
		if pid, err := syscall.Wait4(s.pid, nil, syscall.WNOHANG, nil); pid != 0 || err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// orphans are this process's children that it has not started itself, as far as
// they are of the given one that has ended. Those that have ended are waited for.
func orphans(ended *stat) (out []stat) {
	is, _ := remembered(ended.pid)
	own := os.Getpid()
	group := syscall.Getpgrp()
	for _, pid := range children(own) {
		o, err := readStat(pid)
		// A child of exec.Command alone is in this process's group.
		if err != nil || o.parent != own || o.group == group || o.start < ended.start {
			continue
		}
		if _, own := remembered(pid); own {
			continue
		}
		if o.state == 'Z' {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			continue
		}
		if o.of(ended, is.mark) {
			out = append(out, o)
		}
	}
	return out
}

// of reports whether an orphan is of a child that has ended: by mark, group or session.
// One that has nothing of another child is taken for it.
func (s *stat) of(ended *stat, mark uint64) bool {
	if s.group == ended.pid || s.session == ended.pid {
		return true
	}
	_, group := remembered(s.group)
	_, session := remembered(s.session)
	if group || session {
		return false
	}
	other := markOf(s.pid)
	return mark == 0 || other == 0 || other == mark
}

// stat is what is read of a process in /proc (proc(5)).
type stat struct {
	pid, parent, group, session int
	state                       byte
	start                       uint64 // clock ticks since boot
	used                        uint64 // clock ticks of processor time, its own and of children that it waited for
	name                        string
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(pid, b)
}

func parseStat(pid int, b []byte) (stat, error) {
	// The command name, in brackets, may itself hold spaces and brackets.
	first, last := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if first < 0 || last < first {
		return stat{}, fmt.Errorf("process %d: cannot read its stat line", pid)
	}
	f := strings.Fields(string(b[last+1:]))
	if len(f) < 20 {
		return stat{}, fmt.Errorf("process %d: its stat line has %d fields", pid, len(f))
	}
	s := stat{pid: pid, state: f[0][0], name: string(b[first+1 : last])}
	var errs [4]error
	s.parent, errs[0] = strconv.Atoi(f[1])
	s.group, errs[1] = strconv.Atoi(f[2])
	s.session, errs[2] = strconv.Atoi(f[3])
	s.start, errs[3] = strconv.ParseUint(f[19], 10, 64)
	for _, ticks := range f[11:15] {
		n, err := strconv.ParseUint(ticks, 10, 64)
		if err != nil {
			return stat{}, fmt.Errorf("process %d: its processor time: %w", pid, err)
		}
		s.used += n
	}
	return s, errors.Join(errs[:]...)
}

// command is how a process was started, or its name; at most 120 characters.
func (s *stat) command() string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/cmdline")
	text := strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(string(b), "?"), "\x00", " "))
	if err != nil || text == "" {
		text = s.name
	}
	if r := []rune(text); len(r) > 120 {
		text = string(r[:120]) + "…"
	}
	return text
}

// children are the children of this process.
func children(own int) (pids []int) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err == nil && len(lists) > 0 {
		for _, list := range lists {
			b, err := os.ReadFile(list)
			if errors.Is(err, fs.ErrNotExist) {
				continue // a thread that has ended
			}
			for _, f := range strings.Fields(string(b)) {
				if pid, err := strconv.Atoi(f); err == nil {
					pids = append(pids, pid)
				}
			}
		}
		return pids
	}
	// A kernel without the list (CONFIG_PROC_CHILDREN).
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s, err := readStat(pid); err == nil && s.parent == own {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Forget ends what is remembered of a child that [Start] has started; it is
// called when the child has been waited for.
func Forget(pid int) {
	started.Lock()
	defer started.Unlock()
	if forgotten := started.children[pid].forgotten; forgotten != nil {
		close(forgotten)
	}
	delete(started.children, pid)
}
