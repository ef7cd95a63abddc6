package socket

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
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

// setCongestionOfAll gives all subflows of a socket of Multipath TCP a congestion
// control. The kernel takes any name for such a socket, and silently gives its subflows
// the default in place of one that it does not have: a plain socket finds that out.
func setCongestionOfAll(fd int, name string) error {
	plain, err := scratch()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(plain) }()
	if err := setCongestion(plain, name); err != nil {
		return err
	}
	inKernel, err := unix.GetsockoptString(plain, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err == nil {
		err = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, inKernel)
	}
	if err != nil {
		return harness.Unsupported("congestion control %q of all paths: %w", name, err)
	}
	return nil
}

// Where a congestion control comes from, as information on connections and queries has it.
const (
	FromKernel = "the kernel's own"
	FromModule = "the kernel's own, a module that the first run loads"
	FromEBPF   = "brought along as eBPF"
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

// Usable lists the congestion controls of the kernel that this process may set.
func Usable() ([]string, error) {
	there, err := Controls()
	if err != nil {
		return nil, harness.Unsupported("the kernel's congestion controls: %w", err)
	}
	fd, err := scratch()
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	return slices.DeleteFunc(there, func(c string) bool { return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, c) != nil }), nil
}

// Additional lists the congestion controls that this process may set beyond the
// [Usable] ones, and says of each that can be brought along where it comes from
// here, or why it cannot be had. It takes tens of milliseconds, and is for queries alone;
// nothing stays registered.
func Additional(usable []string) (names []string, origins map[string]string) {
	origins = map[string]string{}
	kernel := btf.NewCache()
	for _, c := range bpf.Names() {
		if slices.Contains(usable, c) {
			origins[c] = FromKernel
			continue
		}
		err := error(nil)
		if origins[c] = FromModule; !loadable(c) {
			origins[c], err = FromEBPF, bpf.Probe(c, kernel)
		}
		if err != nil {
			origins[c] = contract.NotSupported + err.Error()
			continue
		}
		names = append(names, c)
	}
	return names, origins
}

// loadable reports whether the kernel loads a module with the congestion control when
// this process asks for it. Asking would load it, and a query changes nothing.
func loadable(name string) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if unix.Capget(&header, &have[0]) != nil || have[0].Effective&(1<<unix.CAP_NET_ADMIN) == 0 {
		return false
	}
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	list, err := os.ReadFile("/lib/modules/" + unix.ByteSliceToString(u.Release[:]) + "/modules.dep")
	return err == nil && strings.Contains(string(list), "/tcp_"+name+".ko")
}

// Release ends what this process has registered in the kernel: the last that a
// driver does.
func Release() {
	if err := bpf.Release(); err != nil {
		slog.Warn("congestion controls stay in the kernel", "error", err)
	}
}

// Relinquish gives up the capabilities that bring congestion controls along
// (CAP_BPF, CAP_PERFMON), where no option names one of those: a run that loads
// nothing has no right to. It concerns the whole process, for good.
func Relinquish(options map[string]any) error {
	for _, v := range options {
		if name, ok := v.(string); ok && bpf.Has(name) {
			return nil
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	const high = 1<<(unix.CAP_BPF-32) | 1<<(unix.CAP_PERFMON-32)
	if have[1].Permitted&high == 0 {
		return nil
	}
	have[1].Effective &^= high
	have[1].Permitted &^= high
	have[1].Inheritable &^= high
	// Every thread has its own.
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&have[0])), 0); errno != 0 {
		return errno
	}
	return nil
}
