// Package faultlog is the list of the faults that a fault campaign injected
// (faults.jsonl): who injects writes it, who audits a campaign reads it.
//
// Comes in: faults as they begin and end. Goes out: one JSON object a line, and the
// faults again.
package faultlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/unit"
)

// FileName is the name of the list within a folder of exported results.
const FileName = "faults.jsonl"

// Bounds of a list.
const (
	// MaxLine is the length of the longest line, in bytes.
	MaxLine = 16 << 10
	// MaxFaults is the largest number of faults: ten times the largest campaign that
	// the project measures (10 000 faults in virtual time).
	MaxFaults = 100_000
	// maxText is the length of the longest detail or error, in bytes.
	maxText = 4 << 10
	// maxRun is the length of the longest identity of a run, and of a driver's name, in bytes.
	maxRun = 128
)

// Kind is what was done. The list of kinds is closed.
type Kind string

// The kinds of faults.
const (
	Kill                  Kind = "kill"                   // SIGKILL to a process
	Stop                  Kind = "stop"                   // SIGSTOP to a process, SIGCONT at the end
	Restart               Kind = "restart"                // a process is ended in order, and started again
	Gone                  Kind = "gone"                   // a process is killed, and not started again for a time
	PowerCut              Kind = "power-cut"              // every process of a node is killed at once
	ControlCut            Kind = "control-cut"            // no packet passes a node's control link
	ControlSlow           Kind = "control-slow"           // a node's control link delays packets
	ControlLossy          Kind = "control-lossy"          // a node's control link loses packets
	ControlOneWay         Kind = "control-one-way"        // no packet from the node passes its control link
	RadioDown             Kind = "radio-down"             // a node's radio interface is down
	MTU                   Kind = "mtu"                    // a node's radio interface has another MTU
	Address               Kind = "address"                // a node's radio interface has another address
	DiskFull              Kind = "disk-full"              // a node's state folder takes no more bytes
	DiskSlow              Kind = "disk-slow"              // a node's state folder is slow
	DiskError             Kind = "disk-error"             // a node's state folder returns EIO
	DatabaseReadOnly      Kind = "database-read-only"     // the orchestrator's database takes no change
	DatabaseFull          Kind = "database-full"          // the orchestrator's database has no space
	ClockStep             Kind = "clock-step"             // a node's clock is set to another time
	DuplicateAgent        Kind = "duplicate-agent"        // a second agent of a node's name runs
	DuplicateOrchestrator Kind = "duplicate-orchestrator" // a second orchestrator is started on data folder and database

	// Of plain radios alone.
	InterfaceNewIndex Kind = "interface-new-index" // a node's radio interface goes, and comes back with another index
	InterfaceGone     Kind = "interface-gone"      // it goes, and comes back as it was
	InterfaceRenamed  Kind = "interface-renamed"   // it has another name
	NoCarrier         Kind = "no-carrier"          // it is up and has no carrier
	AddressLost       Kind = "address-lost"        // it has no address
	AddressDuplicate  Kind = "address-duplicate"   // another host has its address, too
	MTUHole           Kind = "mtu-hole"            // the path to it drops larger packets, without ICMP
	Route             Kind = "route"               // a node's packets to the other radios take the control network
	Filter            Kind = "filter"              // a node's packet filter drops packets of its radio
	NAT               Kind = "nat"                 // what a node sends on its radio has another source address
	PortTaken         Kind = "port-taken"          // a listener is killed, and another program has its port
	Suspend           Kind = "suspend"             // all processes of a node are stopped
)

// Kinds returns every kind.
func Kinds() []Kind {
	return []Kind{Kill, Stop, Restart, Gone, PowerCut, ControlCut, ControlSlow, ControlLossy, ControlOneWay, RadioDown, MTU, Address,
		DiskFull, DiskSlow, DiskError, DatabaseReadOnly, DatabaseFull, ClockStep, DuplicateAgent, DuplicateOrchestrator,
		InterfaceNewIndex, InterfaceGone, InterfaceRenamed, NoCarrier, AddressLost, AddressDuplicate, MTUHole, Route, Filter, NAT, PortTaken, Suspend}
}

// Target is what a fault hit. The list of targets is closed.
type Target string

// The targets of faults.
const (
	Agent        Target = "agent"        // the agent of a node
	Driver       Target = "driver"       // a driver process on a node
	Emulator     Target = "emulator"     // the process of the emulated radios
	Orchestrator Target = "orchestrator" // the orchestrator's process
	Database     Target = "database"     // the orchestrator's PostgreSQL
	Node         Target = "node"         // everything on a node
	ControlLink  Target = "control-link" // a node's control link
	Radio        Target = "radio"        // a node's radio interface
	Disk         Target = "disk"         // a node's state folder
	Clock        Target = "clock"        // a node's time of day
	Path         Target = "path"         // what a node's packets pass between its programs and its radio
	Listener     Target = "listener"     // a listener on a node
)

// Targets returns every target.
func Targets() []Target {
	return []Target{Agent, Driver, Emulator, Orchestrator, Database, Node, ControlLink, Radio, Disk, Clock, Path, Listener}
}

// Fault is one injected fault. Times are those of the machine's clock; in a lab all
// nodes share it, but for what a fault of the kind clock-step adds.
type Fault struct {
	// Number counts the faults of a campaign from 1, in the order of their injection.
	Number int    `json:"number"`
	Kind   Kind   `json:"kind"`
	Target Target `json:"target"`
	// Run is the identity of the run whose nodes were hit. In virtual time each run has
	// nodes and a clock of its own; elsewhere it is empty, and a fault hits all runs.
	Run string `json:"run,omitempty"`
	// Node is the role of the node that was hit: client, relay or server.
	Node string `json:"node,omitempty"`
	// Driver is the name of the driver whose process was hit; empty for other targets, and
	// in older lists.
	Driver string `json:"driver,omitempty"`
	// From is just before the fault was injected.
	From time.Time `json:"from"`
	// To is just after the fault had ended and what it hit was seen working again. It is
	// zero where that was not seen: the injecting program ended before.
	To time.Time `json:"to,omitzero"`
	// Touches reports whether the fault can change the outcome of an attempt that it
	// overlaps.
	Touches bool `json:"touches"`
	// Detail is, for people, what exactly was done: process identity, size, delay.
	Detail string `json:"detail,omitempty"`
	// Error is why the fault could not be injected.
	Error string `json:"error,omitempty"`
}

// check returns what is wrong with a fault.
func (f Fault) check() error {
	switch {
	case f.Number < 1 || f.Number > MaxFaults:
		return fmt.Errorf("number %d, expected 1 to %d", f.Number, MaxFaults)
	case !slices.Contains(Kinds(), f.Kind):
		return fmt.Errorf("kind %.40q, expected one of %s", f.Kind, list(Kinds()))
	case !slices.Contains(Targets(), f.Target):
		return fmt.Errorf("target %.40q, expected one of %s", f.Target, list(Targets()))
	case f.Node != "" && !slices.Contains(radio.Roles, radio.Role(f.Node)):
		return fmt.Errorf("node %.40q, expected one of %s, or none", f.Node, list(radio.Roles))
	case len(f.Run) > maxRun:
		return fmt.Errorf("run of %d bytes, expected at most %d", len(f.Run), maxRun)
	case len(f.Driver) > maxRun:
		return fmt.Errorf("driver of %d bytes, expected at most %d", len(f.Driver), maxRun)
	case f.From.IsZero():
		return errors.New("from is missing, expected the time of the injection")
	case !f.To.IsZero() && f.To.Before(f.From):
		return fmt.Errorf("to %s is before from %s", f.To.Format(time.RFC3339Nano), f.From.Format(time.RFC3339Nano))
	case len(f.Detail) > maxText || len(f.Error) > maxText:
		return fmt.Errorf("detail of %d and error of %d bytes, expected at most %d bytes each", len(f.Detail), len(f.Error), maxText)
	}
	return nil
}

func list[T ~string](all []T) string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return strings.Join(out, ", ")
}

// OfRun returns the faults that hit a run.
func OfRun(all []Fault, run string) []Fault {
	out := []Fault{}
	for _, f := range all {
		if f.Run == "" || f.Run == run {
			out = append(out, f)
		}
	}
	return out
}

// Append writes one line. A fault is appended when it begins, without To, and again
// with the same number when it has ended.
func Append(w io.Writer, f Fault) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("fault %d: %w", f.Number, err)
	}
	b, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("fault %d: %w", f.Number, err)
	}
	// One call, so that a crash leaves whole lines before the last.
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("fault %d: %w", f.Number, err)
	}
	return nil
}

// Read returns the faults of a list in the order of their numbers: of each number the
// last line. A last line without its end, as a crash of the injecting program leaves
// it, is ignored; any other mistake is an error that names the line.
func Read(r io.Reader) ([]Fault, error) {
	in := bufio.NewReaderSize(r, MaxLine)
	var out []Fault
	for line := 1; ; line++ {
		b, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("line %d is longer than %s, expected one fault", line, unit.FormatBytes(MaxLine))
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		f, err := Parse(b)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		switch {
		case f.Number <= len(out):
			out[f.Number-1] = f
		case f.Number == len(out)+1:
			out = append(out, f)
		default:
			return nil, fmt.Errorf("line %d: number %d follows %d: faults between them are missing", line, f.Number, len(out))
		}
	}
}

// Parse reads one line of a list.
func Parse(line []byte) (Fault, error) {
	var f Fault
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return f, fmt.Errorf("expected one fault as a JSON object: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return f, errors.New("expected one fault as a JSON object, found more after it")
	}
	return f, f.check()
}
