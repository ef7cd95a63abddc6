package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
)

// A driver shares the namespace of the radio's interface with the agent and its
// control network, so what it must not reach is kept from it by two means. The packet
// filter lets its packets out by the radio's interface alone ([radioonly]), and the
// sockets that it can make are those that this filter sees: a packet socket writes past it, a
// Unix socket can reach abstract names of the same namespace, a netfilter socket
// could remove the rule. Drivers cannot have the radio's interface in a namespace of their
// own instead: the agent pings, captures and, in-band, communicates on it, and an emulated
// radio's is a TUN device that the emulator holds.

// user is as whom a driver runs: the image's user in the agent's group for
// drivers. The image's own group comes besides, for the files that it may read.
func (r *Runner) user(image string) (user string, groups []string) {
	name, own, has := strings.Cut(image, ":")
	if name == "" {
		name = "0"
	}
	if has && own != "" {
		groups = []string{own}
	}
	return name + ":" + strconv.FormatUint(uint64(r.radioOnly.Group()), 10), groups
}

// sockets is the filter of system calls for a driver.
func (r *Runner) sockets(m *contract.Manifest) string {
	if slices.Contains(m.Capabilities, "CAP_NET_ADMIN") {
		return r.adminSockets
	}
	return r.plainSockets
}

// socketProfile is the engine's default filter of system calls with fewer kinds
// of sockets: IP, and the netlink that shows and sets interfaces and routes. A driver
// that may change the namespace (admin) also gets Multipath TCP and the generic
// netlink with which its paths are set up. Others could not set up any, and the kernel
// has sockets of its own below one of Multipath TCP, which have no group until they
// are connected.
func socketProfile(admin bool) (string, error) {
	profile := seccomp.DefaultProfile()
	var kept []*seccomp.Syscall
	for _, s := range profile.Syscalls {
		var names []string
		for _, name := range s.Names {
			// socketcall is the older way to the same, and its arguments cannot be seen.
			if name != "socket" && name != "socketcall" {
				names = append(names, name)
			}
		}
		if s.Names = names; len(names) > 0 {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 {
		return "", errors.New("the default filter of system calls is empty")
	}
	is := func(argument uint, number uint64) specs.LinuxSeccompArg {
		return specs.LinuxSeccompArg{Index: argument, Value: number, Op: specs.OpEqualTo}
	}
	const domain, protocol = 0, 2
	inet, inet6 := []specs.LinuxSeccompArg{is(domain, unix.AF_INET)}, []specs.LinuxSeccompArg{is(domain, unix.AF_INET6)}
	kinds := [][]specs.LinuxSeccompArg{{is(domain, unix.AF_NETLINK), is(protocol, unix.NETLINK_ROUTE)}}
	if admin {
		kinds = append(kinds, []specs.LinuxSeccompArg{is(domain, unix.AF_NETLINK), is(protocol, unix.NETLINK_GENERIC)})
	} else {
		single := specs.LinuxSeccompArg{Index: protocol, Value: unix.IPPROTO_MPTCP, Op: specs.OpNotEqual}
		inet, inet6 = append(inet, single), append(inet6, single)
	}
	for _, args := range append(kinds, inet, inet6) {
		kept = append(kept, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: []string{"socket"}, Action: specs.ActAllow, Args: args}})
	}
	profile.Syscalls = kept
	b, err := json.Marshal(profile)
	if err != nil {
		return "", fmt.Errorf("filter of system calls: %w", err)
	}
	return string(b), nil
}
