package field

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/backoff"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/lab/netns"
)

// Port is a port at which a process listens.
type Port struct {
	Network string // "tcp" or "udp"
	Number  int
}

func (p Port) String() string { return fmt.Sprintf("%s port %d", p.Network, p.Number) }

// states are the states of listening sockets in the kernel's tables (proc(5): the
// numbers of include/net/tcp_states.h); a UDP socket that is not connected is "closed".
var states = map[string]string{"tcp": "0A", "udp": "07"}

// Listening returns the ports at which a process listens over IPv4, in the order of
// their numbers.
func Listening(id process.Identity) ([]Port, error) {
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", id.PID))
	if err != nil {
		return nil, err
	}
	var inodes []string
	for _, fd := range fds {
		// A descriptor may have been closed just now.
		if target, err := os.Readlink(fd); err == nil {
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				inodes = append(inodes, strings.TrimSuffix(inode, "]"))
			}
		}
	}
	var out []Port
	for _, network := range []string{"tcp", "udp"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", id.PID, network))
		if err != nil {
			return nil, fmt.Errorf("sockets of process %d: %w", id.PID, err)
		}
		ports, err := sockets(f, states[network], inodes)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("sockets of process %d: %w", id.PID, err)
		}
		for _, n := range ports {
			out = append(out, Port{network, n})
		}
	}
	slices.SortFunc(out, func(a, b Port) int { return a.Number - b.Number })
	return slices.Compact(out), nil
}

// sockets reads the ports of the sockets with a state and one of the inodes from a table
// of the kernel (proc(5), /proc/net/tcp): the address is the second column, the state the
// fourth, and the inode the tenth.
func sockets(r io.Reader, state string, inodes []string) ([]int, error) {
	var out []int
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 10 || f[3] != state || !slices.Contains(inodes, f[9]) {
			continue
		}
		_, text, _ := strings.Cut(f[1], ":")
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != 2 {
			return nil, fmt.Errorf("address %q, expected hexadecimal digits with a port of four", f[1])
		}
		out = append(out, int(b[0])<<8|int(b[1]))
	}
	return out, lines.Err()
}

// takeLimit is how long a port may take to be free after its process was killed.
const takeLimit = 2 * time.Second

// Take takes a node's port as a program does that has nothing to do with it, as soon as it
// is free, and gives it back when end is called. Connections are accepted by the kernel,
// and nobody answers them.
func Take(ctx context.Context, l *netns.Lab, role radio.Role, p Port) (end func() error, err error) {
	n, err := l.State.Node(role)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(takeLimit); ; {
		var c io.Closer
		err := process.InNamespace(netns.NamespacePath(n.Namespace), func() error {
			var err error
			address := ":" + strconv.Itoa(p.Number)
			if p.Network == "udp" {
				c, err = net.ListenPacket("udp4", address)
			} else {
				c, err = net.Listen("tcp4", address)
			}
			return err
		})
		switch {
		case err == nil:
			return c.Close, nil
		case time.Now().After(deadline):
			return nil, fmt.Errorf("%s of the %s could not be taken within %s: %w", p, role, takeLimit, err)
		case !backoff.Sleep(ctx, time.Millisecond):
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}
