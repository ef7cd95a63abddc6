//go:build kernels

package inside

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// TestMultipath runs the driver of TCP over two wires with Multipath TCP: both must
// carry a part of the transfer.
func TestMultipath(t *testing.T) {
	try(t, "sockets", "MPTCP over two wires, with the driver", func(t *testing.T) ([]string, error) {
		c := conditions{bitsPerSecond: 1e6, delay: 10 * time.Millisecond}
		w := netem(t, c)
		if err := connect(radio.SecondDevice, w.client, w.server); err != nil {
			return nil, err
		}
		for ns, role := range map[string]radio.Role{w.client: radio.RoleClient, w.server: radio.RoleServer} {
			other := radio.RoleServer
			if role == other {
				other = radio.RoleClient
			}
			if err := at(ns, func(h *netlink.Handle) error {
				return prepare(h, radio.SecondDevice, radio.SecondAddresses[role], radio.SecondAddresses[other], c)
			}); err != nil {
				return nil, fmt.Errorf("second wire in %s: %w", ns, err)
			}
		}
		return overTwo(w)
	})
}

// overTwo carries a payload over both wires, and returns their shares.
func overTwo(w *way) ([]string, error) {
	end := func(role contract.Role, at radio.Role) *contract.Parameters {
		p := parameters(role, map[string]any{"multipath": true})
		p.Paths = []contract.Path{{Device: device, Address: radio.Addresses[at]}, {Device: radio.SecondDevice, Address: radio.SecondAddresses[at]}}
		return p
	}
	server, err := launch("tcp", w.server, end(contract.RoleServer, radio.RoleServer))
	if err != nil {
		return nil, err
	}
	defer server.stop()
	if _, err := server.until(contract.KindReady); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	p := end(contract.RoleClient, radio.RoleClient)
	p.Transfer = contract.Transfer{ID: fmt.Sprintf("%032x", 7), SizeBytes: 1 << 20}
	client, err := launch("tcp", w.client, p)
	if err != nil {
		return nil, err
	}
	done, err := client.until(contract.KindResult)
	if err = errors.Join(err, client.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	paths := done.Result.Paths
	if len(paths) != 2 || paths[0].Share < 0.2 || paths[1].Share < 0.2 {
		return nil, fmt.Errorf("the paths carried %+v, expected a fifth over each of two wires at least", paths)
	}
	return []string{fmt.Sprintf("shares %.2f and %.2f of 1 MiB", paths[0].Share, paths[1].Share)}, nil
}
