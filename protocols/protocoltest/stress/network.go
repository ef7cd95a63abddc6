package stress

import (
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/internal/namespace"
	"linktrial/protocols/contract"
)

const loopback = "lo"

// network is the loopback interface of a namespace of its own, or without root of
// this machine.
type network struct {
	file *os.File // nil: this machine's

	mu   sync.Mutex
	port int
}

// ports lie below those that the kernel gives to clients.
const firstPort, lastPort = 10_000, 30_000

func newNetwork() (*network, error) {
	if os.Geteuid() != 0 {
		return &network{port: firstPort + os.Getpid()*97%(lastPort-firstPort)}, nil
	}
	f, err := namespace.Unnamed()
	if err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	n := &network{file: f, port: firstPort}
	if err := n.up(); err != nil {
		n.close()
		return nil, fmt.Errorf("loopback interface of a namespace: %w", err)
	}
	return n, nil
}

func (n *network) up() error {
	h, err := netlink.NewHandleAt(netns.NsHandle(n.file.Fd()))
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := h.LinkByName(loopback)
	if err != nil {
		return err
	}
	return h.LinkSetUp(l)
}

func (n *network) close() {
	if n.file != nil {
		n.file.Close()
	}
}

// namespace is its file; "": this machine's.
func (n *network) namespace() string {
	if n.file == nil {
		return ""
	}
	return "/proc/self/fd/" + strconv.Itoa(int(n.file.Fd()))
}

// endpoint is the next one for a listener: none is used twice in a row.
func (n *network) endpoint() contract.Endpoint {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.port++; n.port > lastPort {
		n.port = firstPort
	}
	return contract.Endpoint{Address: "127.0.0.1", Port: n.port}
}
