// Package sysctl knows the settings of the kernel (sysctl(8)) on which the results of
// transports depend: those of TCP, MPTCP and SCTP, and the buffers of sockets. Comes in:
// the network namespace of the thread that calls. Goes out: their values, and which of them
// were changed since a moment.
package sysctl

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is where the kernel shows its settings.
const Root = "/proc/sys"

var patterns = []string{
	"net/ipv4/tcp_*", "net/ipv4/udp_*mem*", "net/core/rmem*", "net/core/wmem*", "net/core/optmem_max",
	"net/core/default_qdisc", "net/core/netdev_max_backlog", "net/ipv4/ip_no_pmtu_disc", "net/ipv4/ip_forward",
	"net/mptcp/*", "net/sctp/*",
}

// secrets are no settings: a key, which must not end up in a result.
var secrets = []string{"net.ipv4.tcp_fastopen_key"}

// others are settings that change for good reasons: lists follow from which modules are
// loaded, also for a congestion control or scheduler that is used for the first time, and
// container engines have the kernel forward packets.
var others = []string{
	"net.ipv4.ip_forward",
	"net.ipv4.tcp_available_congestion_control", "net.ipv4.tcp_allowed_congestion_control", "net.ipv4.tcp_available_ulp",
	"net.mptcp.available_path_managers", "net.mptcp.available_schedulers",
}

// Read reads the settings below root, by their names; values have single blanks between
// their parts. Those that are write-only, or that this user may not read, are left out.
func Read(root string) (map[string]string, error) {
	files, err := list(root)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f.path)
		if unreadable(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("settings of the kernel: %w", err)
		}
		out[f.name] = text(b)
	}
	return out, nil
}

type file struct{ name, path string }

func list(root string) (out []file, err error) {
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, fmt.Errorf("settings of the kernel: %w", err)
		}
		for _, path := range paths {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return nil, fmt.Errorf("settings of the kernel: %w", err)
			}
			if name := strings.ReplaceAll(rel, "/", "."); !slices.Contains(secrets, name) {
				out = append(out, file{name, path})
			}
		}
	}
	return out, nil
}

func unreadable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EIO)
}

func text(b []byte) string { return strings.Join(strings.Fields(string(b)), " ") }

// Kept are the settings as they were at one moment. It may be used by one goroutine at a
// time.
type Kept struct {
	each   []kept
	latest []byte // of the last that was read
}

type kept struct {
	file
	now *os.File
	was []byte
}

// Change is a setting that is another one than it was.
type Change struct {
	Name, Was, Is string
	path          string
}

// Keep keeps the settings below root as they are now, but for those that change for good
// reasons. Close it.
func Keep(root string) (*Kept, error) {
	files, err := list(root)
	if err != nil {
		return nil, err
	}
	k := &Kept{latest: make([]byte, 4096)}
	for _, f := range files {
		if slices.Contains(others, f.name) {
			continue
		}
		now, err := os.Open(f.path)
		if err == nil {
			one := kept{file: f, now: now}
			var is []byte
			if is, err = k.read(&one); err == nil {
				one.was = bytes.Clone(is)
				k.each = append(k.each, one)
				continue
			}
			_ = now.Close() // nothing was written
		}
		if !unreadable(err) {
			k.Close()
			return nil, fmt.Errorf("settings of the kernel: %w", err)
		}
	}
	return k, nil
}

// read reads one's value, which is valid until the next call. It costs a microsecond: the
// file stays open.
func (k *Kept) read(one *kept) ([]byte, error) {
	n, err := unix.Pread(int(one.now.Fd()), k.latest, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", one.name, err)
	}
	return k.latest[:n], nil
}

// Changed are the settings that are others now. One that cannot be read any more is none.
func (k *Kept) Changed() (out []Change) {
	for i := range k.each {
		one := &k.each[i]
		is, err := k.read(one)
		if err != nil || bytes.Equal(is, one.was) {
			continue
		}
		if c := (Change{one.name, text(one.was), text(is), one.path}); c.Was != c.Is {
			out = append(out, c)
		}
	}
	return out
}

// Close forgets the settings.
func (k *Kept) Close() {
	for _, one := range k.each {
		_ = one.now.Close() // nothing was written
	}
	k.each = nil
}

// PutBack gives a setting the value that it had. Without the right to, or where /proc/sys
// is mounted read-only as in the agent's service, it returns an error.
func (c *Change) PutBack() error {
	f, err := os.OpenFile(c.path, os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = f.WriteString(c.Was)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("setting %s: %w", c.Name, err)
	}
	return nil
}

// Command is what puts a setting back, for people.
func (c *Change) Command() string { return fmt.Sprintf("sysctl -w %s='%s'", c.Name, c.Was) }
