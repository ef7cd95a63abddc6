package journal

import (
	"encoding/json"
	"time"

	"linktrial/internal/radio"
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
	TypeLook             Type = "look"              // Look: of the plan's rule to stop by
)
