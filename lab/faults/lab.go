package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"linktrial/internal/backoff"
	"linktrial/internal/driverfolder"
	"linktrial/internal/faultdisk"
	"linktrial/internal/faultlog"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/wallclock"
	"linktrial/lab/netns"
)

// appearLimit is how long an injector waits for a process that is being started
// again, before the fault cannot be injected.
const appearLimit = 15 * time.Second

// Lab is the injector of a lab in real time: it signals processes that the lab has
// started, and no others, and changes interfaces in the lab's own namespaces.
type Lab struct {
	Net *netns.Lab
	// Agent and Orchestrator return the PID that runs now; it may have ended just now.
	Agent        func(node radio.Role) int
	Orchestrator func() int
	// HoldOrchestrator has an orchestrator that ended not be started again until it is
	// called with false.
	HoldOrchestrator func(hold bool)
	// Second starts another agent of a node's name, with a state folder of its own.
	Second func(node radio.Role) (*exec.Cmd, error)
	// SecondOrchestrator runs another orchestrator until it ends or ctx does, when it is
	// killed. It returns the last that it said, and whether it ended by itself.
	SecondOrchestrator func(ctx context.Context, share Share) (said string, ended bool, err error)
	// Database is the folder of the orchestrator's private PostgreSQL.
	Database string
	// Disk returns the disk of a node's state folder; nil where no fault was to hit it.
	Disk func(node radio.Role) *faultdisk.Disk
	// DatabaseDisk returns the disk of that folder; nil where no fault was to fill it.
	DatabaseDisk func() *faultdisk.Disk
	// Clock returns the clock of a node; nil where no fault was to step it.
	Clock func(node radio.Role) *wallclock.Offset
	// Answers reports whether the orchestrator answers, from a database that takes changes.
	Answers func(ctx context.Context) bool
	// Idle reports whether nothing of an attempt can run on a node: a relay that only
	// forwards packets.
	Idle func(node radio.Role) bool
}

// Inject implements [Injector].
func (l *Lab) Inject(ctx context.Context, i Injection) (Injected, error) {
	switch i.Kind {
	case faultlog.PowerCut:
		return l.powerCut(i)
	case faultlog.ControlCut:
		return l.during(i, "the bridge's port is down", func() (func() error, error) { return l.Net.ControlDown(i.Node) })
	case faultlog.ControlSlow:
		return l.impaired(i, netns.Impairment{Delay: i.Delay}, fmt.Sprintf("%s more for each packet, each way", i.Delay))
	case faultlog.ControlLossy:
		return l.impaired(i, netns.Impairment{Loss: i.Loss, Seed: uint64(i.Pick)}, fmt.Sprintf("%g of the packets lost, each way", i.Loss))
	case faultlog.ControlOneWay:
		return l.impaired(i, netns.Impairment{Silent: true}, "no packet from the node passes")
	case faultlog.RadioDown:
		return l.during(i, "the interface is down", func() (func() error, error) { return l.Net.RadioDown(i.Node) })
	case faultlog.MTU:
		return l.during(i, fmt.Sprintf("%d bytes", i.MTUBytes), func() (func() error, error) {
			before, err := netns.SetRadioMTU(&l.Net.State, i.Node, i.MTUBytes)
			return func() error { _, err := netns.SetRadioMTU(&l.Net.State, i.Node, before); return err }, err
		})
	case faultlog.Address:
		return l.during(i, "another address of the network", func() (func() error, error) {
			return func() error { return netns.SetRadioAddress(&l.Net.State, i.Node, true) }, netns.SetRadioAddress(&l.Net.State, i.Node, false)
		})
	case faultlog.Gone:
		if i.Target == faultlog.Database {
			return l.gone(ctx, i, l.holdDatabase)
		}
		return l.gone(ctx, i, func(on bool) error {
			l.HoldOrchestrator(on)
			return nil
		})
	case faultlog.DatabaseReadOnly:
		return l.readOnly(ctx, i)
	case faultlog.DatabaseFull:
		return l.databaseFull(i)
	case faultlog.DuplicateAgent:
		return l.duplicate(i)
	case faultlog.DuplicateOrchestrator:
		return l.duplicateOrchestrator(ctx, i)
	case faultlog.ClockStep:
		return l.clockStep(i)
	case faultlog.DiskFull:
		// A write is cut short somewhere in a record.
		room := int64(i.Pick % maxRoom)
		return l.disk(i, faultdisk.Failure{Full: true, RoomBytes: room}, fmt.Sprintf("room for %d bytes more", room))
	case faultlog.DiskSlow:
		return l.disk(i, faultdisk.Failure{Delay: i.Delay}, fmt.Sprintf("each use takes %s longer", i.Delay))
	case faultlog.DiskError:
		return l.disk(i, faultdisk.Failure{Error: true}, "reading and writing return EIO")
	case faultlog.PortTaken:
		return l.portTaken(ctx, i)
	}
	if begin, detail := l.onPath(i); begin != nil {
		return l.during(i, detail, begin)
	}
	return l.signalled(ctx, i)
}

// impaired has a node's control link lose or delay packets.
func (l *Lab) impaired(i Injection, how netns.Impairment, detail string) (Injected, error) {
	return l.during(i, detail, func() (func() error, error) { return l.Net.ImpairControlLink(i.Node, how) })
}

// maxRoom bounds what a full disk takes before it is full, in bytes: a few records.
const maxRoom = 8 << 10

// disk has the disk of a node's state folder fail.
func (l *Lab) disk(i Injection, does faultdisk.Failure, detail string) (Injected, error) {
	d := l.Disk(i.Node)
	if d == nil {
		return Injected{}, fmt.Errorf("the state folder of %s is not on a disk that can fail", i.Node)
	}
	d.Fail(does)
	return Injected{Touches: l.touches(i), Detail: detail, End: func() error {
		d.Fail(faultdisk.Failure{})
		return nil
	}}, nil
}

// during is a fault that lasts until end is called, and needs no time after that.
func (l *Lab) during(i Injection, detail string, begin func() (end func() error, err error)) (Injected, error) {
	end, err := begin()
	return Injected{Touches: l.touches(i), Detail: detail, End: end}, err
}

func (l *Lab) powerCut(i Injection) (Injected, error) {
	// The zero identity where the agent is being started again: then any is the next one.
	before, _ := process.Identify(l.Agent(i.Node))
	working := l.agentWorking(i.Node, before)
	restore, err := l.Net.PowerCut(i.Node)
	return Injected{Touches: l.touches(i), Detail: "interfaces down, all processes killed", End: restore, Working: working}, err
}

// gone kills a process, and holds it from being started again until the end.
func (l *Lab) gone(ctx context.Context, i Injection, hold func(on bool) error) (Injected, error) {
	id, what, err := l.await(ctx, i)
	if err != nil {
		return Injected{}, err
	}
	if err := hold(true); err != nil {
		return Injected{}, err
	}
	end := func() error { return hold(false) }
	if err := id.Signal(syscall.SIGKILL); err != nil && !process.Ended(err) {
		return Injected{}, errors.Join(err, end())
	}
	return Injected{Touches: l.touches(i), Detail: what, Working: l.working(i, id), End: end}, nil
}

// signalled injects a fault that is a signal to a process.
func (l *Lab) signalled(ctx context.Context, i Injection) (Injected, error) {
	for {
		id, what, err := l.await(ctx, i)
		if err != nil {
			return Injected{}, err
		}
		// A process may end by itself just before it is signalled: then it is another's turn.
		if out, err := l.signal(i, id, what); !process.Ended(err) {
			return out, err
		}
	}
}

// signal injects a fault that is a signal to a process.
func (l *Lab) signal(i Injection, id process.Identity, what string) (Injected, error) {
	var err error
	out := Injected{Touches: l.touches(i), Detail: what, Working: l.working(i, id)}
	if i.Target == faultlog.Driver {
		path, err := id.Program()
		if err != nil {
			return out, err
		}
		out.Driver = driverOf(path)
		out.Detail = out.Driver + ", " + what
	}
	switch i.Kind {
	case faultlog.Kill:
		err = id.Signal(syscall.SIGKILL)
	case faultlog.Restart:
		err = id.Signal(syscall.SIGTERM)
	case faultlog.Stop:
		out.Working = nil
		out.End = func() error {
			if err := id.Signal(syscall.SIGCONT); err != nil && !process.Ended(err) {
				return err
			}
			return nil
		}
		err = id.Signal(syscall.SIGSTOP)
	default:
		err = fmt.Errorf("%s is not there yet", i.Kind)
	}
	return out, err
}

// touches reports whether a fault can change the outcome of an attempt. Agents need
// neither orchestrator nor database for one. Packets between client and server do not
// pass the node of a relay on which no driver runs: the emulator forwards them.
func (l *Lab) touches(i Injection) bool {
	switch i.Target {
	case faultlog.Orchestrator, faultlog.Database, faultlog.ControlLink, faultlog.Clock:
		return false
	case faultlog.Agent, faultlog.Disk, faultlog.Node, faultlog.Radio, faultlog.Path:
		return !l.Idle(i.Node)
	}
	return true
}

// errNone is the error of a process that does not run.
var errNone = errors.New("none runs")

// await returns the process that a fault is to hit, and what it is for people.
func (l *Lab) await(ctx context.Context, i Injection) (process.Identity, string, error) {
	for deadline := time.Now().Add(appearLimit); ; {
		id, what, err := l.find(i)
		if err == nil {
			return id, what, nil
		}
		if time.Now().After(deadline) {
			return id, what, fmt.Errorf("no process to %s within %s: %w", i.Kind, appearLimit, err)
		}
		if !backoff.Sleep(ctx, 20*time.Millisecond) {
			return id, what, ctx.Err()
		}
	}
}

func (l *Lab) find(i Injection) (id process.Identity, what string, err error) {
	switch i.Target {
	case faultlog.Agent:
		id, err = process.Identify(l.Agent(i.Node))
	case faultlog.Orchestrator:
		id, err = process.Identify(l.Orchestrator())
	case faultlog.Emulator:
		id, err = process.Identify(l.Net.EmulatorPID())
	case faultlog.Database:
		id, err = child(l.Orchestrator(), i.Pick, func(path string) bool { return filepath.Base(path) == "postgres" })
	case faultlog.Driver:
		id, err = child(l.Agent(i.Node), i.Pick, func(path string) bool { return isDriver(path) && (i.Protocol == "" || driverOf(path) == i.Protocol) })
	default:
		err = errNone
	}
	if err != nil {
		return id, "", err
	}
	return id, fmt.Sprintf("process %d", id.PID), nil
}

// driverOf is the name of the driver that a process runs: that of its folder.
func driverOf(path string) string { return filepath.Base(filepath.Dir(path)) }

// isDriver reports whether a program is a driver: its folder has a manifest.
func isDriver(path string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(path), driverfolder.Manifest))
	return err == nil
}

// child chooses one of a process's children whose program is right.
func child(parent int, pick uint32, right func(path string) bool) (process.Identity, error) {
	all, err := matching(parent, right)
	if err != nil {
		return process.Identity{}, err
	}
	if len(all) == 0 {
		return process.Identity{}, errNone
	}
	return all[rand.New(rand.NewPCG(uint64(pick), 0)).IntN(len(all))], nil
}

func matching(parent int, right func(path string) bool) ([]process.Identity, error) {
	if _, err := process.Identify(parent); err != nil {
		return nil, err
	}
	all, err := process.Children(parent)
	return slices.DeleteFunc(all, func(id process.Identity) bool {
		path, err := id.Program()
		return err != nil || !right(path)
	}), err
}

// working returns what reports whether the target of a fault works again, after it was
// the process before.
func (l *Lab) working(i Injection, before process.Identity) func(context.Context) bool {
	switch i.Target {
	case faultlog.Orchestrator, faultlog.Database:
		return func(ctx context.Context) bool { return !before.Alive() && l.Answers(ctx) }
	case faultlog.Agent:
		return l.agentWorking(i.Node, before)
	case faultlog.Emulator:
		return func(context.Context) bool {
			pid := l.Net.EmulatorPID()
			return pid != 0 && pid != before.PID
		}
	case faultlog.Driver, faultlog.Listener:
		listeners := l.listeners(i.Node)
		return func(context.Context) bool { return !before.Alive() && l.listeners(i.Node) >= listeners }
	}
	return nil
}

// agentWorking returns what reports whether a node's agent works again, after it was
// the process before.
func (l *Lab) agentWorking(node radio.Role, before process.Identity) func(context.Context) bool {
	listeners := l.listeners(node)
	return func(context.Context) bool {
		now, err := process.Identify(l.Agent(node))
		return err == nil && now != before && l.listeners(node) >= listeners
	}
}

// listeners counts the listeners that run on a node: all its drivers, but for the
// client's, which come and go with the trials.
func (l *Lab) listeners(node radio.Role) int {
	if node == radio.RoleClient {
		return 0
	}
	all, err := matching(l.Agent(node), isDriver)
	if err != nil {
		return 0
	}
	return len(all)
}
