package journal

import (
	"encoding/json"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/internal/signature"
	"linktrial/protocols/contract"
)

// Record is one entry of a journal.
type Record struct {
	Seq  int64      `json:"seq"`  // from 1, without gaps, per run and node
	Run  string     `json:"run"`  // the run's identity
	Node string     `json:"node"` // the agent's name
	Role radio.Role `json:"role"`
	At   time.Time  `json:"at"` // the node's clock, UTC
	Type Type       `json:"type"`
	// Body is the JSON of the struct that Type names.
	Body json.RawMessage `json:"body,omitempty"`
}

// Type is the kind of a record, which determines its body.
type Type string

const (
	TypeRunStarted       Type = "run-started"       // RunStarted
	TypeRunResumed       Type = "run-resumed"       // RunStarted
	TypeRunEnded         Type = "run-ended"         // RunEnded: terminal for this node
	TypeProvenance       Type = "provenance"        // Provenance
	TypeClockOffset      Type = "clock-offset"      // ClockOffset
	TypeListenerReady    Type = "listener-ready"    // Listener
	TypeListenerFailed   Type = "listener-failed"   // Listener
	TypeAttemptStarted   Type = "attempt-started"   // AttemptStarted
	TypeConnected        Type = "connected"         // Connected
	TypeSamples          Type = "samples"           // Samples
	TypeReceived         Type = "received"          // Received: server side of a transfer
	TypeAttemptEnded     Type = "attempt-ended"     // AttemptEnded: terminal for an attempt
	TypeTrialEnded       Type = "trial-ended"       // TrialEnded: terminal for a trial
	TypeCommand          Type = "command"           // Command
	TypeDriverMisbehaved Type = "driver-misbehaved" // Misbehaviour
	TypeAgentStopped     Type = "agent-stopped"     // AgentStopped
	TypeInterfaceFailed  Type = "interface-failed"  // RadioInterface
	TypeInterfaceReady   Type = "interface-ready"   // RadioInterface, without a fault
	TypeWaiting          Type = "waiting"           // Waiting
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

// Provenance is the state of the node that can matter to a figure.
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
	Implementation string `json:"implementation"` // as its probe reports
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
	// Unknown is why there is no figure ("no control link").
	Unknown string `json:"unknown,omitempty"`
	// Epoch is the node's clock less the one that never steps, when it was measured; 0: not
	// known. Where the clock has stepped since, [File] takes that into the offset.
	Epoch time.Duration `json:"-"`
}

// Listener is the state of one treatment's listener on the server node, or of one
// of its relay processes.
type Listener struct {
	Treatment string `json:"treatment"`
	// At is the role whose node runs the relay process; empty for the
	// treatment's own listener.
	At       radio.Role     `json:"at,omitempty"`
	Port     int            `json:"port"`
	Info     *contract.Info `json:"info,omitempty"`
	Code     contract.Code  `json:"code,omitempty"`
	Message  string         `json:"message,omitempty"`
	Restarts int            `json:"restarts,omitempty"`
	// Outside is set where something outside the driver ended it, or stopped it.
	Outside bool `json:"outside,omitempty"`
	// Stopped is set where the process was stopped and not ended: it may go on.
	Stopped bool `json:"stopped,omitempty"`
	// Renewed is set where Linktrial ended it, or has not started it, because the radio's
	// interface was not in order, and starts it again: it may have kept what is not true
	// any more. Message says what was wrong.
	Renewed bool `json:"renewed,omitempty"`
	// Crashed is set where the driver crashed ([ReasonCrashed]); Transfers are those
	// that it was carrying then.
	Crashed   bool     `json:"crashed,omitempty"`
	Transfers []string `json:"transfers,omitempty"`
}

// ListenerName names one of a run's listeners: a treatment's own, or with At one of
// its relay processes.
type ListenerName struct {
	Treatment string
	At        radio.Role
}

// Name is which listener it is.
func (l *Listener) Name() ListenerName { return ListenerName{l.Treatment, l.At} }

// AgentStopped is a time at which the node's agent did not run, though it had not ended.
type AgentStopped struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Waiting is why the leading node does not go on from here on: something of the apparatus is
// not in order. Without a fault it goes on.
type Waiting struct {
	Trial int    `json:"trial"`
	Fault string `json:"fault,omitempty"`
}

// RadioInterface is the state of the radio's interface on a node from here on.
type RadioInterface struct {
	Device string `json:"device,omitempty"`
	// Forwards reports whether the node's kernel forwards others' packets over it. The
	// relays of an emulated network forward within the emulator.
	Forwards bool   `json:"forwards,omitempty"`
	Fault    string `json:"fault,omitempty"` // what keeps it from carrying packets as it should
}

// AttemptStarted opens one execution of a trial.
type AttemptStarted struct {
	Trial     int      `json:"trial"`
	Attempt   int      `json:"attempt"` // from 1
	Iteration int      `json:"iteration"`
	Treatment string   `json:"treatment"`
	Transfers []string `json:"transfers"` // identity of each flow
	// Probes is the identity of each probe, which are numbered on from the flows.
	Probes []string `json:"probes,omitempty"`
}

// Connected is written when a flow's connection is established.
type Connected struct {
	Trial     int   `json:"trial"`
	Attempt   int   `json:"attempt"`
	Flow      int   `json:"flow"`
	ConnectNS int64 `json:"connect_ns"`
}

// Samples is a batch of samples of one flow, in order of time.
type Samples struct {
	Trial   int               `json:"trial"`
	Attempt int               `json:"attempt"`
	Flow    int               `json:"flow"`
	Side    string            `json:"side"` // "client" or "server"
	Samples []contract.Sample `json:"samples"`
}

// Received is what the server reports of one transfer, matched to an attempt by
// the transfer's identity.
type Received struct {
	Treatment string           `json:"treatment"`
	Transfer  string           `json:"transfer"`
	Result    *contract.Result `json:"result,omitempty"`
	Code      contract.Code    `json:"code,omitempty"`
	Message   string           `json:"message,omitempty"`
	// Reason says why the result cannot be true: a rule of figures that this node alone can
	// hold; Message then has what was seen. Empty: it may be.
	Reason string `json:"reason,omitempty"`
	// Packets is how long it took, by the packets on this node's real radios, from when the
	// payload had begun until as many bytes as it has had arrived; 0: that is not known.
	Packets time.Duration `json:"packets_ns,omitempty"`
}

// Verdict on an attempt. Closed list.
type Verdict string

const (
	Succeeded Verdict = "succeeded"
	Failed    Verdict = "failed"    // the driver reported an error, or broke the contract
	TimedOut  Verdict = "timed-out" // a limit of the plan was reached: a stuck transfer
	Aborted   Verdict = "aborted"   // ended from outside: by command, or because the agent died
	Invalid   Verdict = "invalid"   // the figure must not count; Reason names the rule
)

// AttemptEnded is terminal for an attempt; none is ever overwritten.
type AttemptEnded struct {
	Trial     int     `json:"trial"`
	Attempt   int     `json:"attempt"`
	Iteration int     `json:"iteration"`
	Treatment string  `json:"treatment"`
	Verdict   Verdict `json:"verdict"`
	// Reason is a code of the driver contract or one of the executor's own
	// ([ReasonExited] and the others).
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"` // one sentence for people
	Flows   []FlowResult `json:"flows"`
	// Probes are those of the attempt. Beside flows they decide nothing of its
	// verdict; each has its own.
	Probes []FlowResult `json:"probes,omitempty"`
	// Duration of the whole attempt on the leading node, connect and close included.
	Duration time.Duration `json:"duration_ns"`
	// Dead is the time since the previous attempt's end that no driver ran.
	Dead  time.Duration        `json:"dead_ns"`
	Radio *radiocontrol.Report `json:"radio,omitempty"` // on an emulated radio
	// Control is what passed between the leading node and the orchestrator from before
	// the first flow until after the last, with in-band control; nil: not counted.
	Control *ControlTraffic `json:"control,omitempty"`
	// Host is what the leading node's processors kept from the attempt's programs; nil:
	// not measured, as in virtual time.
	Host *HostLoad `json:"host,omitempty"`
	// Log is the end of the drivers' standard error, where the attempt failed.
	Log string `json:"log,omitempty"`
}

// ControlTraffic is packets between nodes and the orchestrator that passed an interface of
// this node, with their IP headers. One that the node forwards passes two of them.
type ControlTraffic struct {
	Packets int64 `json:"packets"`
	Bytes   int64 `json:"bytes"`
	// Others of them, with OthersBytes, are neither from this node nor to it: another
	// node's, which it forwards, or which its orchestrator is sent.
	Others      int64 `json:"others,omitempty"`
	OthersBytes int64 `json:"others_bytes,omitempty"`
}

// Add adds what passed in another time.
func (c *ControlTraffic) Add(more ControlTraffic) {
	c.Packets, c.Bytes = c.Packets+more.Packets, c.Bytes+more.Bytes
	c.Others, c.OthersBytes = c.Others+more.Others, c.OthersBytes+more.OthersBytes
}

// TypeControlCounted is [ControlCounted].
const TypeControlCounted Type = "control-counted"

// ControlCounted is the control traffic of a node that does not lead from Since to Until,
// with in-band control: one record follows the other without gaps while the node's part
// in the run is executed.
type ControlCounted struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	ControlTraffic
}

// FlowResult is one flow of an attempt, as its client reported it.
type FlowResult struct {
	Flow      int              `json:"flow"`
	Treatment string           `json:"treatment"`
	Transfer  string           `json:"transfer"`
	Verdict   Verdict          `json:"verdict"`
	Reason    string           `json:"reason,omitempty"`
	Message   string           `json:"message,omitempty"`
	ConnectNS int64            `json:"connect_ns,omitempty"`
	Result    *contract.Result `json:"result,omitempty"` // where it succeeded
	// Progress of a flow that did not succeed, from its last sample.
	LastSample *contract.Sample `json:"last_sample,omitempty"`
}

// TrialEnded is terminal for a trial: no further attempt follows by itself.
type TrialEnded struct {
	Trial    int     `json:"trial"`
	Attempts int     `json:"attempts"`
	Verdict  Verdict `json:"verdict"` // of the last attempt; aborted where there is none
	// Reason is [ReasonSkipped] where a person ended the trial.
	Reason string `json:"reason,omitempty"`
}

// Self is the name in place of a person's in commands that the leading node gives itself.
const Self = "linktrial"

// CommandKind is what a person asks of a run. Closed list.
type CommandKind string

const (
	CommandAbort  CommandKind = "abort"
	CommandPause  CommandKind = "pause"  // hold the run at the next trial boundary
	CommandResume CommandKind = "resume" // let it go on
	CommandSkip   CommandKind = "skip"   // end a trial without a further attempt
	CommandRepeat CommandKind = "repeat" // one more attempt of a trial that has ended
)

// Command is a person's command that the node received, or with By [Self] a pause of
// the leading node's own. It is written before
// it takes effect: after a [CommandRepeat], its trial has not ended any more.
type Command struct {
	ID    string      `json:"id"`
	Kind  CommandKind `json:"kind"`
	By    string      `json:"by,omitempty"`
	Trial *int        `json:"trial,omitempty"` // of skip and repeat
	// Reason is why the leading node paused the run by itself.
	Reason string `json:"reason,omitempty"`
	// Rejected is why the command could not be applied any more; it then has no
	// effect. The key is that of the format's first version.
	Rejected string `json:"passed_over,omitempty"`
}

// Misbehaviour is a breach of the driver contract that did not end the attempt by itself.
type Misbehaviour struct {
	Treatment string `json:"treatment"`
	// Trial, Attempt and Flow are where it happened; absent where it belongs to no
	// attempt, and Flow also where it belongs to no one flow.
	Trial   *int   `json:"trial,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Flow    *int   `json:"flow,omitempty"`
	Message string `json:"message"`
	Log     string `json:"log,omitempty"`
}
