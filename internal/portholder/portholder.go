// Package portholder names the program that holds a port of this machine. Comes in: a
// kind of socket and a port. Goes out: its name and process, as the kernel has them.
package portholder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const tcpListen = 10 // TCP_LISTEN (include/net/tcp_states.h)

// Find names who holds a port in this process's network namespace, as "python3 (process
// 4711)"; network is "tcp" or "udp", empty for both. Empty: nobody does.
func Find(network string, port int) string {
	inodes := map[string]bool{}
	for _, s := range sockets(network) {
		if int(s.ID.SourcePort) == port && s.INode != 0 {
			inodes[fmt.Sprintf("socket:[%d]", s.INode)] = true
		}
	}
	if len(inodes) == 0 {
		return ""
	}
	if who := processes(inodes); len(who) > 0 {
		return strings.Join(who, ", ")
	}
	return "another user's program"
}

// sockets are those at which packets of strangers arrive. What cannot be read has none.
func sockets(network string) []*netlink.Socket {
	var out []*netlink.Socket
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if network != "udp" {
			all, _ := netlink.SocketDiagTCP(family)
			out = append(out, slices.DeleteFunc(all, func(s *netlink.Socket) bool { return s.State != tcpListen })...)
		}
		if network != "tcp" {
			all, _ := netlink.SocketDiagUDP(family)
			out = append(out, all...)
		}
	}
	return out
}

// processes are those that have one of the sockets open, each once.
func processes(inodes map[string]bool) []string {
	folders, _ := filepath.Glob("/proc/[0-9]*/fd") // the pattern is right
	var out []string
	for _, folder := range folders {
		open, _ := os.ReadDir(folder) // of a process that has ended, or is another user's: none
		if !slices.ContainsFunc(open, func(e os.DirEntry) bool {
			to, _ := os.Readlink(filepath.Join(folder, e.Name()))
			return inodes[to]
		}) {
			continue
		}
		process := filepath.Dir(folder)
		name, _ := os.ReadFile(filepath.Join(process, "comm")) // of one that has just ended: none
		out = append(out, fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), filepath.Base(process)))
	}
	return out
}
