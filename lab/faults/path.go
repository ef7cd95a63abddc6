package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"linktrial/internal/backoff"
	"linktrial/internal/faultlog"
	"linktrial/internal/process"
	"linktrial/lab/field"
)

// onPath returns what begins a fault of a plain radio or of the path to it, and what that
// is for people; nil: the fault is none of these.
func (l *Lab) onPath(i Injection) (begin func() (end func() error, err error), detail string) {
	net := l.Net
	switch i.Kind {
	case faultlog.InterfaceNewIndex, faultlog.InterfaceGone:
		same := i.Kind == faultlog.InterfaceGone
		detail = "the interface is gone; it comes back with another index"
		if same {
			detail = "the interface is gone; it comes back with its index"
		}
		return func() (func() error, error) {
			restore, err := net.RemoveRadio(i.Node)
			return func() error { return restore(same) }, err
		}, detail
	case faultlog.InterfaceRenamed:
		return func() (func() error, error) { return net.RenameRadio(i.Node) }, "the interface has another name"
	case faultlog.NoCarrier:
		return func() (func() error, error) { return net.CutAir(i.Node) }, "the interface is up and has no carrier"
	case faultlog.AddressLost:
		return func() (func() error, error) { return net.DropAddress(i.Node) }, "the interface has no address"
	case faultlog.AddressDuplicate:
		return func() (func() error, error) { return net.TakeAddress(i.Node) }, "another host announces the address"
	case faultlog.MTUHole:
		return func() (func() error, error) { return net.NarrowAir(i.Node, i.MTUBytes) },
			fmt.Sprintf("packets of more than %d bytes do not arrive, without ICMP", i.MTUBytes)
	case faultlog.Route:
		return func() (func() error, error) { return net.RouteAround(i.Node) }, "packets to the other radios take the control network"
	case faultlog.Filter:
		return func() (func() error, error) { return field.Filter(net, i.Node, i.Block) }, fmt.Sprintf("the packet filter drops %s", i.Block)
	case faultlog.NAT:
		return func() (func() error, error) { return field.Translate(net, i.Node) }, "packets leave with another source address"
	case faultlog.Suspend:
		return func() (func() error, error) { return net.Suspend(i.Node) }, "all processes stopped"
	}
	return nil, ""
}

// listener is a process that listens at ports.
type listener struct {
	id      process.Identity
	program string
	ports   []field.Port
}

// findListener chooses one of the processes on a node that listen at a port.
func (l *Lab) findListener(i Injection) (listener, error) {
	all, err := matching(l.Agent(i.Node), isDriver)
	if err != nil {
		return listener{}, err
	}
	var found []listener
	for _, id := range all {
		path, err := id.Program()
		if err != nil {
			continue // it has ended just now, and so has one without sockets below
		}
		if ports, err := field.Listening(id); err == nil && len(ports) > 0 {
			found = append(found, listener{id, driverOf(path), ports})
		}
	}
	if len(found) == 0 {
		return listener{}, errNone
	}
	return found[rand.New(rand.NewPCG(uint64(i.Pick), 0)).IntN(len(found))], nil
}

// portTaken kills a listener and takes its port, as a program does that was started first
// after a node has come up again.
func (l *Lab) portTaken(ctx context.Context, i Injection) (Injected, error) {
	var hit listener
	for deadline := time.Now().Add(appearLimit); ; {
		var err error
		if hit, err = l.findListener(i); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return Injected{}, fmt.Errorf("no listener with a port within %s: %w", appearLimit, err)
		}
		if !backoff.Sleep(ctx, 20*time.Millisecond) {
			return Injected{}, ctx.Err()
		}
	}
	out := Injected{
		Touches: l.touches(i), Driver: hit.program, Working: l.working(i, hit.id),
		Detail: fmt.Sprintf("%s, process %d killed, %s taken", hit.program, hit.id.PID, hit.ports[0]),
	}
	if err := hit.id.Signal(syscall.SIGKILL); err != nil && !process.Ended(err) {
		return Injected{}, err
	}
	var err error
	out.End, err = field.Take(ctx, l.Net, i.Node, hit.ports[0])
	return out, err
}
