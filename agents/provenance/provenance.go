// Package provenance records the state of a node that can matter to what is measured:
// kernel, TCP settings, interfaces, queueing, drivers, priority. Comes in: the
// kernel's own files and sockets, in the network namespace of the agent. Goes
// out: [journal.Provenance].
package provenance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/executor/journal"
	"linktrial/internal/sysctl"
)

// Gather reads the node's state. What a node does not have (no tc, no
// ethtool) is absent and no error; an error means that what is measured would be
// worthless without what could not be read. It takes at most a few seconds.
func Gather(ctx context.Context) (journal.Provenance, error) {
	var p journal.Provenance
	var err error
	if p.Host, err = os.Hostname(); err != nil {
		return p, fmt.Errorf("provenance: %w", err)
	}
	if p.Kernel, err = Kernel(); err != nil {
		return p, err
	}
	p.OS = osName()
	p.CPU = cpuName()
	if p.Sysctls, err = sysctl.Read(sysctl.Root); err != nil {
		return p, err
	}
	if p.Interfaces, err = interfaces(); err != nil {
		return p, err
	}
	p.Qdiscs = qdiscs(ctx)
	p.Priority = priority()
	return p, nil
}

// Kernel is the running kernel as uname names it: system, release, build, machine.
func Kernel() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("provenance: uname: %w", err)
	}
	text := func(b [65]byte) string { return unix.ByteSliceToString(b[:]) }
	return strings.Join([]string{text(u.Sysname), text(u.Release), text(u.Version), text(u.Machine)}, " "), nil
}

func osName() string {
	return field("/etc/os-release", "=", "PRETTY_NAME")
}

func cpuName() string {
	if m := field("/proc/cpuinfo", ":", "model name"); m != "" {
		return m
	}
	return field("/proc/cpuinfo", ":", "host") // User-Mode Linux
}

// field is the first value of a key in a file of lines, or nothing.
func field(file, sep, key string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	return fieldOf(f, sep, key)
}

func fieldOf(lines io.Reader, sep, key string) string {
	s := bufio.NewScanner(lines)
	for s.Scan() {
		k, v, ok := strings.Cut(s.Text(), sep)
		if ok && strings.TrimSpace(k) == key {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}

func interfaces() ([]journal.Interface, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("provenance: interfaces: %w", err)
	}
	tool, err := ethtool.NewEthtool()
	if err == nil {
		defer tool.Close()
	}
	var out []journal.Interface
	for _, l := range links {
		a := l.Attrs()
		i := journal.Interface{Name: a.Name, MTU: a.MTU}
		addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			return nil, fmt.Errorf("provenance: addresses of %s: %w", a.Name, err)
		}
		for _, addr := range addrs {
			i.Addresses = append(i.Addresses, addr.IPNet.String())
		}
		sort.Strings(i.Addresses)
		if tool != nil {
			// The loopback and some tunnels have no driver and no features.
			if d, err := tool.DriverName(a.Name); err == nil {
				i.Driver = d
			}
			i.Offloads = offloads(tool, a.Name)
		}
		out = append(out, i)
	}
	return out, nil
}

// SentBytes is how many bytes a network interface has sent since it exists, as
// packets with all their headers.
func SentBytes(device string) (int64, error) {
	s, err := counters(device)
	if err != nil {
		return 0, err
	}
	return int64(s.TxBytes), nil
}

// ReceivedBytes is the same of what it has received.
func ReceivedBytes(device string) (int64, error) {
	s, err := counters(device)
	if err != nil {
		return 0, err
	}
	return int64(s.RxBytes), nil
}

func counters(device string) (*netlink.LinkStatistics, error) {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("counters of interface %s: %w", device, err)
	}
	s := l.Attrs().Statistics
	if s == nil {
		return nil, fmt.Errorf("counters of interface %s: the kernel gives none", device)
	}
	return s, nil
}

// offloadWords pick, among the kernel's features of a device, those that
// change which packets leave it or who checks them.
var offloadWords = []string{"segmentation", "checksum", "scatter-gather", "gro", "lro", "gso"}

func offloads(tool *ethtool.Ethtool, name string) map[string]bool {
	all, err := tool.Features(name)
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for k, v := range all {
		if slices.ContainsFunc(offloadWords, func(w string) bool { return strings.Contains(k, w) }) {
			out[k] = v
		}
	}
	return out
}

// qdiscs is what tc prints, or nothing where there is no tc.
func qdiscs(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tc, err := exec.LookPath("tc")
	if err != nil {
		tc = "/usr/sbin/tc" // not in an ordinary user's path
	}
	out, err := exec.CommandContext(ctx, tc, "-j", "qdisc").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
