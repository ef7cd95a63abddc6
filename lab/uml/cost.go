package uml

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"linktrial/lab/uml/guest"
)

// HostCost is what a guest has cost the host from its start to its end: its
// kernel and the processes that stand for the guest's own.
type HostCost struct {
	Processor time.Duration
	Switches  int64 // between threads
}

// counters are of a process and those that it starts from then on.
type counters struct {
	processor, switches int
}

func openCounters(pid int) (counters, error) {
	open := func(config uint64) (int, error) {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: config, Bits: unix.PerfBitInherit, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
		return unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	}
	c := counters{-1, -1}
	var err error
	if c.processor, err = open(unix.PERF_COUNT_SW_TASK_CLOCK); err == nil {
		c.switches, err = open(unix.PERF_COUNT_SW_CONTEXT_SWITCHES)
	}
	if err != nil {
		c.close()
		return c, fmt.Errorf("count what a guest costs: %w", err)
	}
	return c, nil
}

func (c counters) read() (HostCost, error) {
	var v [2]uint64
	for i, fd := range []int{c.processor, c.switches} {
		var b [8]byte
		n, err := unix.Read(fd, b[:])
		if err == nil && n != len(b) {
			err = fmt.Errorf("%d bytes, expected %d", n, len(b))
		}
		if err != nil {
			return HostCost{}, fmt.Errorf("read what a guest costs: %w", err)
		}
		v[i] = binary.NativeEndian.Uint64(b[:])
	}
	return HostCost{Processor: time.Duration(v[0]), Switches: int64(v[1])}, nil
}

func (c counters) close() {
	for _, fd := range []int{c.processor, c.switches} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

func (b *boot) openCounters(pid int) (*counters, error) {
	if !b.cfg.Count {
		return nil, nil
	}
	c, err := openCounters(pid)
	return &c, err
}

// account adds what the boot has cost to each of its sheets.
func (b *boot) account(c *counters) error {
	var host HostCost
	if c != nil {
		defer c.close()
		var err error
		if host, err = c.read(); err != nil {
			return err
		}
	}
	var calls map[string]map[string]int64
	if b.cfg.Trace {
		var err error
		if calls, err = b.systemCalls(); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := b.first; i < b.first+b.count; i++ {
		b.results[i].Host, b.results[i].SystemCalls = host, calls
	}
	return nil
}

// systemCalls reads what the tracers in the guest have counted.
func (b *boot) systemCalls() (map[string]map[string]int64, error) {
	all := map[string]map[string]int64{}
	names := []string{guest.Emulator}
	for _, n := range b.cfg.Sheets[b.first].Network.Nodes {
		names = append(names, string(n.Role))
	}
	for _, name := range names {
		path := filepath.Join(b.cfg.Dir, guest.TracePath(name))
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // the guest did not come so far, which its sheets say
		}
		if err != nil {
			return nil, fmt.Errorf("system calls of %s: %w", name, err)
		}
		if all[name], err = parseTrace(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return all, nil
}

// parseTrace reads the summary of strace: a table whose fourth column is a
// number of calls and whose last is their name.
func parseTrace(text []byte) (map[string]int64, error) {
	calls := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	inside := false
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) > 0 && strings.HasPrefix(f[0], "-----"):
			if inside {
				return calls, nil // the total follows
			}
			inside = true
		case inside:
			if len(f) != 5 && len(f) != 6 { // with or without errors
				return nil, fmt.Errorf("line %d: %d columns, expected 5 or 6 of strace's summary", n, len(f))
			}
			v, err := strconv.ParseInt(f[3], 10, 64)
			if err != nil || v < 0 {
				return nil, fmt.Errorf("line %d: %q, expected a number of calls", n, f[3])
			}
			calls[f[len(f)-1]] += v
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if inside {
		return nil, errors.New("strace's summary ends within its table")
	}
	return calls, nil // a process that made no calls has no table
}
