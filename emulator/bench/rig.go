package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/emulator/tun"
	"linktrial/internal/arrival"
	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/internal/radiocontrol/client"
	"linktrial/internal/scratch"
)

// rig is an emulator between two namespaces of its own.
type rig struct {
	folder     *scratch.Folder
	namespaces []string // client's, server's
	emulator   *tun.Emulator
	client     *client.Client
	open       []int // sockets
}

var made atomic.Int64

const (
	port           = 7001
	controlTimeout = 30 * time.Second
	receiveBuffer  = 32 << 20 // the measured socket must not lose what the emulator delivered
)

func newRig(n *radio.Network) (r *rig, err error) {
	r = &rig{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("bench: %w", err), r.close())
		}
	}()
	if r.folder, err = scratch.New("linktrial-bench-rig-"); err != nil {
		return r, err
	}
	cfg := tun.Config{Network: n, ControlSocket: filepath.Join(r.folder.Path, "control")}
	for _, v := range n.Nodes {
		name := fmt.Sprintf("ltbench-%d-%d", os.Getpid(), made.Add(1))
		if err := namespace.Make(name); err != nil {
			return r, err
		}
		r.namespaces = append(r.namespaces, name)
		cfg.Nodes = append(cfg.Nodes, tun.NodeConfig{Role: v.Role, NetNS: name, Address: v.Address})
	}
	if r.emulator, err = tun.Start(cfg); err != nil {
		return r, err
	}
	if r.client, err = client.Dial(cfg.ControlSocket); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	return r, r.client.Begin(ctx, radiocontrol.Begin{Trial: trial, Seed: 1})
}

const trial = "bench"

// close removes everything that the rig made.
func (r *rig) close() error {
	var errs []error
	for _, fd := range r.open {
		errs = append(errs, unix.Close(fd))
	}
	if r.client != nil {
		errs = append(errs, r.client.Close())
	}
	if r.emulator != nil {
		errs = append(errs, r.emulator.Stop())
	}
	for _, n := range r.namespaces {
		errs = append(errs, namespace.Remove(n))
	}
	if r.folder != nil {
		errs = append(errs, r.folder.Remove())
	}
	return errors.Join(errs...)
}

// sockets are, until close, a connected sender in the client's namespace and a receiver with
// kernel time stamps in the server's.
func (r *rig) sockets() (from, to int, err error) {
	addr := unix.SockaddrInet4{Port: port, Addr: [4]byte{10, 77, 0, 3}}
	open := func(node string, prepare func(fd int) error) (int, error) {
		fd := -1
		err := process.InNamespace(namespace.Path(node), func() (err error) {
			if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
				return err
			}
			return prepare(fd)
		})
		if fd >= 0 {
			r.open = append(r.open, fd)
		}
		return fd, err
	}
	to, err = open(r.namespaces[1], func(fd int) error {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer),
			arrival.Enable(fd),
			unix.Bind(fd, &addr))
	})
	if err != nil {
		return -1, -1, fmt.Errorf("receiver: %w", err)
	}
	from, err = open(r.namespaces[0], func(fd int) error { return unix.Connect(fd, &addr) })
	if err != nil {
		return -1, -1, fmt.Errorf("sender: %w", err)
	}
	return from, to, nil
}

// carried is how many packets have come out at the server so far, and what
// processor time the loop has used.
func (r *rig) carried() (int64, time.Duration, error) {
	cpu, err := r.emulator.ProcessorTime()
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	rep, err := r.client.End(ctx, trial)
	if err != nil {
		return 0, 0, err
	}
	n := rep.Hops[0].DeliveredPackets
	// The counters go on from zero.
	return n, cpu, r.client.Begin(ctx, radiocontrol.Begin{Trial: trial, Seed: 1})
}

func (r *rig) lateMedian() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	s, err := r.client.Status(ctx)
	if err != nil {
		return 0, err
	}
	return s.LateMedian, nil
}
