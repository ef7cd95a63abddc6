package journal

import (
	"fmt"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/signature"
)

// RunStarted opens a node's journal of a run, or its resumption.
type RunStarted struct {
	SheetHash string `json:"sheet_hash"`
	Version   string `json:"version"` // of linktrial
	Trials    int    `json:"trials"`
	// Alive is when the agent's earlier start is last known to have run, within a few
	// seconds; zero: it is not known, or there was none.
	Alive time.Time `json:"alive,omitzero"`
	// Forwards is as in [RadioInterface].
	Forwards bool `json:"forwards,omitempty"`
	// Boot is this start of the node's kernel, and SinceBoot the time since then at the
	// record's; empty: steps of the node's clock are not looked for.
	Boot      string        `json:"boot,omitempty"`
	SinceBoot time.Duration `json:"since_boot_ns,omitempty"`
}

var runKind = kindOf([]Type{TypeRunStarted, TypeRunResumed},
	"all",
	"`sheet_hash`, `version`, `trials`; `run-resumed` at each later start of the agent, with `alive`, when its earlier start is last known to have run, `boot`, which names this start of the node's kernel, and `since_boot_ns`, the time since then (in virtual time only with injected faults); `forwards` at a relay on real radios whose kernel forwards packets",
	nil,
	func(t Type, b *RunStarted) string {
		s := fmt.Sprintf("takes up a sheet of %d trials, %.12s", b.Trials, b.SheetHash)
		if t == TypeRunResumed {
			s = "continues after a restart of the agent"
		}
		return s + ", linktrial " + b.Version
	})

// RunEnd is how a node's part in a run ended.
type RunEnd string

const (
	RunCompleted RunEnd = "completed" // every trial has a terminal record
	RunAborted   RunEnd = "aborted"   // by command
	RunStopped   RunEnd = "stopped"   // by a fault of the node (disk full); Reason names it
)

// RunEnded closes a node's journal of a run.
type RunEnded struct {
	End    RunEnd `json:"end"`
	Reason string `json:"reason,omitempty"`
}

var runEndedKind = kindOf([]Type{TypeRunEnded},
	"all",
	"`end` (`completed`, `aborted`, `stopped`), `reason`; terminal for the node",
	func(r *Record, b *RunEnded) error {
		if b.End != RunCompleted && b.End != RunAborted && b.End != RunStopped {
			return fmt.Errorf("end %q", b.End)
		}
		return nil
	},
	func(_ Type, b *RunEnded) string { return "its part has ended: " + string(b.End) + because(b.Reason) })

// Provenance is the state of the node that can matter to what is measured.
type Provenance struct {
	Host       string            `json:"host"`
	Kernel     string            `json:"kernel"`
	OS         string            `json:"os"`
	CPU        string            `json:"cpu"`
	Sysctls    map[string]string `json:"sysctls"` // of the TCP stack, in the radio's network namespace
	Interfaces []Interface       `json:"interfaces"`
	Qdiscs     string            `json:"qdiscs"` // as tc prints them, JSON
	Drivers    []Driver          `json:"drivers"`
	Linktrial  string            `json:"linktrial"` // version
	Priority   *Priority         `json:"priority,omitempty"`
	// Where the trials run: one of the places below.
	Place string `json:"place"`
	// Lab is the proof that the node's radio is emulated, in real time: the signature of the
	// lab over run, sheet, role and radio address ([LabStatement]).
	Lab *LabProof `json:"lab,omitempty"`
}

var provenanceKind = kindOf([]Type{TypeProvenance},
	"all, once",
	"`host`, `kernel`, `os`, `cpu`, version of `linktrial`, `sysctls` (TCP, MPTCP, SCTP, buffers of sockets), `interfaces` with `mtu`, `addresses`, `driver`, `offloads`, `qdiscs`, `drivers` with `version`, `implementation`, `sha256` of the program and `digest` of the whole driver, `detail` or `unsupported` with the reason, `priority` of the agent, which drivers inherit except in containers (`nice`, `policy` of the scheduler, `cpu_weight` of the service's group; absent where the system does not tell), `place`, and `lab` where the place is `emulated, real time`: `key`, `signature`, `role`, `address` ([what it proves](radios.md#emulated-named-and-unnamed))",
	nil,
	func(_ Type, b *Provenance) string {
		return fmt.Sprintf("host %s, kernel %s, %d drivers, %s", b.Host, b.Kernel, len(b.Drivers), b.Place)
	})

// Priority is that of the agent's processes for the processors of its node. Drivers inherit
// it, except in containers.
type Priority struct {
	Nice   int    `json:"nice"`   // -20, first, to 19 (setpriority(2))
	Policy string `json:"policy"` // of the scheduler, such as "other" or "fifo" (sched(7))
	// CPUWeight is the share of the service's group beside others that are busy, 1 to 10000;
	// 0: the node has no such group.
	CPUWeight int `json:"cpu_weight,omitempty"`
}

// LabProof is what the lab of a node signed as the run began there.
type LabProof struct {
	signature.LabProof
	Role    radio.Role `json:"role"`
	Address string     `json:"address"` // of the node on the radio network
}

// LabStatement is what a lab signs for a node in a run.
func LabStatement(run, sheetHash string, role radio.Role, address string) signature.LabStatement {
	return signature.LabStatement{Kind: signature.LabRun, Subject: run, Detail: sheetHash, Role: string(role), Address: address}
}

// Verify returns the key of the lab that vouches for the node in a run.
func (p *LabProof) Verify(run, sheetHash string) (signature.PublicKey, error) {
	if p == nil {
		return signature.VerifyLab(signature.LabStatement{}, signature.LabProof{})
	}
	return signature.VerifyLab(LabStatement(run, sheetHash, p.Role, p.Address), p.LabProof)
}

// PlaceReal is [Provenance.Place] with the radio that the agent was told is attached.
const PlaceReal = "real radio"

// PlaceUnnamed is [Provenance.Place] of a node whose agent was told of no radio, and for
// which no lab vouches: whatever its interface is connected to, nobody has named it. The
// profile in the run's sheet is what the plan says, and nothing else.
const PlaceUnnamed = radio.Unnamed

// PlaceVirtual is [Provenance.Place] in the virtual-time lab: the clock of such
// a node is its guest's own, which starts anew with every guest.
const PlaceVirtual = "emulated, virtual time"

// PlaceEmulated is [Provenance.Place] on emulated radios in real time, whose nodes
// are on one machine and have its clock.
const PlaceEmulated = "emulated, real time"

// Interface is one network interface of a node.
type Interface struct {
	Name      string          `json:"name"`
	MTU       int             `json:"mtu"`
	Addresses []string        `json:"addresses"`
	Driver    string          `json:"driver,omitempty"`
	Offloads  map[string]bool `json:"offloads,omitempty"`
}

// Driver is one protocol driver as it is on a node.
type Driver struct {
	Name           string `json:"name"`
	Version        string `json:"version"`
	Implementation string `json:"implementation"` // as the driver reports
	SHA256         string `json:"sha256"`         // of the program
	// Digest is of all that the driver is made of, as run sheets name it.
	Digest      string            `json:"digest,omitempty"`
	Unsupported string            `json:"unsupported,omitempty"`
	Detail      map[string]string `json:"detail,omitempty"`
}

// ClockOffset is the node's clock against the orchestrator's.
type ClockOffset struct {
	When string `json:"when"` // "before" or "after" the run, or "resumed"
	// Offset is orchestrator minus node; Error bounds it (half the round trip).
	Offset time.Duration `json:"offset_ns"`
	Error  time.Duration `json:"error_ns"`
	// Unknown is why there is no value ("no control link").
	Unknown string `json:"unknown,omitempty"`
	// Epoch is the node's clock less the one that never steps, when it was measured; 0: not
	// known. Where the clock has stepped since, [File] takes that into the offset.
	Epoch time.Duration `json:"-"`
}

var clockOffsetKind = kindOf([]Type{TypeClockOffset},
	"all, `when` `before` and `after`, and `resumed` after a new start of the node",
	"`offset_ns` (orchestrator minus node) and `error_ns` (half the round trip of the best of eight exchanges), or `unknown` with the reason",
	func(r *Record, b *ClockOffset) error {
		if b.Error < 0 {
			return fmt.Errorf("negative error %s", b.Error)
		}
		return nil
	},
	func(_ Type, b *ClockOffset) string {
		if b.Unknown != "" {
			return "clock offset " + b.When + " the run: unknown, " + b.Unknown
		}
		return fmt.Sprintf("clock offset %s the run: %+.3f ms, within %.3f ms", b.When, b.Offset.Seconds()*1e3, b.Error.Seconds()*1e3)
	})

// AgentStopped is a time at which the node's agent did not run, though it had not ended.
type AgentStopped struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

var agentStoppedKind = kindOf([]Type{TypeAgentStopped},
	"all (not in virtual time)",
	"`from`, `to`: the agent did not run, though it had not ended: it was stopped, or the machine was suspended",
	func(r *Record, b *AgentStopped) error {
		if b.To.Before(b.From) {
			return fmt.Errorf("stopped from %s to %s", b.From, b.To)
		}
		return nil
	},
	func(_ Type, b *AgentStopped) string {
		return fmt.Sprintf("the agent did not run for %.1f s", b.To.Sub(b.From).Seconds())
	})
