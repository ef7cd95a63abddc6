package socket

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"linktrial/protocols/harness"
	"linktrial/protocols/tcp/bpf"
)

const (
	available = "/proc/sys/net/ipv4/tcp_available_congestion_control"
	allowed   = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
)

// Controls lists the congestion controls that this node's kernel has of its own.
func Controls() ([]string, error) { return controls(available) }

func controls(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(string(b)), bpf.IsKernelName), nil
}

// setCongestion gives a socket the kernel's congestion control of that name, and
// where it has none the one that is brought along.
func setCongestion(fd int, name string) error {
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT) && bpf.Has(name):
		if err := bpf.Set(fd, name); err != nil {
			return harness.Unsupported("this kernel has no congestion control %q, and the one that is brought along (eBPF) cannot be had: %w", name, err)
		}
		return nil
	case errors.Is(err, unix.ENOENT):
		list, _ := controls(available)
		return harness.Unsupported("this kernel has no congestion control %q; there are %s: %w", name, strings.Join(list, ", "), err)
	case errors.Is(err, unix.EPERM):
		list, _ := controls(allowed)
		return harness.Unsupported("congestion control %q needs CAP_NET_ADMIN; without it there are %s: %w", name, strings.Join(list, ", "), err)
	}
	return harness.Unsupported("congestion control %q: %w", name, err)
}

// Where a congestion control comes from, as information on connections and probes has it.
const (
	FromKernel = "the kernel's own"
	FromEBPF   = "brought along (eBPF)"
)

// Congestion is the name of a socket's congestion control as plans have it, and
// where it comes from.
func Congestion(fd int) (name, from string, err error) {
	inKernel, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return "", "", err
	}
	for _, name := range bpf.Names() {
		if bpf.KernelName(name) == inKernel {
			return name, FromEBPF, nil
		}
	}
	return inKernel, FromKernel, nil
}

// Usable lists the congestion controls that this process may set, and says of each
// that is brought along where it comes from, or why it cannot be had.
func Usable() (names []string, origins map[string]string, err error) {
	there, err := Controls()
	if err != nil {
		return nil, nil, harness.Unsupported("the kernel's congestion controls: %w", err)
	}
	fd, err := scratch()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	names = slices.DeleteFunc(slices.Clone(there), func(c string) bool { return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, c) != nil })
	origins = map[string]string{}
	for _, c := range bpf.Names() {
		if slices.Contains(there, c) {
			origins[c] = FromKernel
		} else if err := bpf.Probe(c); err != nil {
			origins[c] = "not supported: " + err.Error()
		} else {
			origins[c] = FromEBPF
			names = append(names, c)
		}
	}
	return names, origins, nil
}

// Release ends what this process has registered in the kernel: the last that a
// driver does.
func Release() {
	if err := bpf.Release(); err != nil {
		slog.Warn("congestion controls stay in the kernel", "error", err)
	}
}
