package journal

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/protocols/contract"
)

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

var attemptStartedKind = kindOf([]Type{TypeAttemptStarted},
	"client",
	"`trial`, `attempt` from 1, `iteration`, `treatment`, `transfers`, `probes`: the identities of flows and probes",
	func(r *Record, b *AttemptStarted) error {
		all := slices.Concat(b.Transfers, b.Probes)
		for _, t := range all {
			if _, err := contract.ParseTransferID(t); err != nil {
				return err
			}
		}
		if len(all) == 0 || len(all) > maxFlows {
			return fmt.Errorf("%d transfers and %d probes", len(b.Transfers), len(b.Probes))
		}
		return errors.Join(attempt(b.Trial, b.Attempt, 0), r.only(radio.RoleClient))
	},
	func(_ Type, b *AttemptStarted) string {
		return fmt.Sprintf("trial %d (%s, iteration %d), attempt %d starts", b.Trial, b.Treatment, b.Iteration, b.Attempt)
	})

// Connected is written when a flow's connection is established.
type Connected struct {
	Trial     int   `json:"trial"`
	Attempt   int   `json:"attempt"`
	Flow      int   `json:"flow"`
	ConnectNS int64 `json:"connect_ns"`
}

var connectedKind = kindOf([]Type{TypeConnected},
	"client, for the flows that start on it",
	"`trial`, `attempt`, `flow`, `connect_ns`",
	func(r *Record, b *Connected) error {
		if b.ConnectNS < 0 {
			return fmt.Errorf("connect_ns %d", b.ConnectNS)
		}
		return errors.Join(attempt(b.Trial, b.Attempt, b.Flow), r.only(radio.RoleClient))
	},
	func(_ Type, b *Connected) string {
		return fmt.Sprintf("trial %d: flow %d is connected after %.3f s", b.Trial, b.Flow, time.Duration(b.ConnectNS).Seconds())
	})

// Samples is a batch of samples of one flow, in order of time.
type Samples struct {
	Trial   int               `json:"trial"`
	Attempt int               `json:"attempt"`
	Flow    int               `json:"flow"`
	Side    string            `json:"side"` // "client" or "server"
	Samples []contract.Sample `json:"samples"`
}

var samplesKind = kindOf([]Type{TypeSamples},
	"client, server; another node for the flows that start on it",
	"`trial`, `attempt`, `flow`, `side`, `samples` of about a second",
	func(_ *Record, b *Samples) error {
		if b.Side != "client" && b.Side != "server" {
			return fmt.Errorf("side %q", b.Side)
		}
		return attempt(b.Trial, b.Attempt, b.Flow)
	},
	nil)

// Received is what the server reports of one transfer, matched to an attempt by
// the transfer's identity.
type Received struct {
	Treatment string           `json:"treatment"`
	Transfer  string           `json:"transfer"`
	Result    *contract.Result `json:"result,omitempty"`
	Code      contract.Code    `json:"code,omitempty"`
	Message   string           `json:"message,omitempty"`
	// Reason says why the result cannot be true: a rule about values that this node alone can
	// hold; Message then has what was seen. Empty: it may be.
	Reason string `json:"reason,omitempty"`
	// Packets is how long it took, by the packets on this node's real radios, from when the
	// payload had begun until as many bytes as it has had arrived; 0: that is not known.
	Packets time.Duration `json:"packets_ns,omitempty"`
}

var receivedKind = kindOf([]Type{TypeReceived},
	"server",
	"`treatment`, `transfer`, and `result` or `code` and `message`: how the transfer ended at the server; `packets_ns`, on real radios: how long its packets took to arrive, [of which a transfer is not faster](#values-that-cannot-be-true); `reason`, of a probe: why its `result` cannot be true, with the `message`",
	func(r *Record, b *Received) error {
		if b.Transfer != "" {
			if _, err := contract.ParseTransferID(b.Transfer); err != nil {
				return err
			}
		}
		if (b.Result == nil) == (b.Code == "") {
			return errors.New("expected either a result or a code")
		}
		if b.Result != nil && b.Result.Probe != nil && b.Transfer == "" {
			return errors.New("a probe without its identity")
		}
		return r.only(radio.RoleServer)
	},
	func(_ Type, b *Received) string {
		if b.Result == nil {
			return fmt.Sprintf("a transfer of %s was not received%s%s", b.Treatment, because(string(b.Code)), because(b.Message))
		}
		text := fmt.Sprintf("%d bytes of %s received in %.3f s", b.Result.SizeBytes, b.Treatment, time.Duration(b.Result.ElapsedNS).Seconds())
		if b.Result.Digest == "" { // of a probe
			return text + because(b.Reason) + because(b.Message)
		}
		return fmt.Sprintf("%s, digest %.12s", text, b.Result.Digest)
	})

// Verdict on an attempt. Closed list.
type Verdict string

const (
	Succeeded Verdict = "succeeded"
	Failed    Verdict = "failed"    // the driver reported an error, or broke the contract
	TimedOut  Verdict = "timed-out" // a limit of the plan was reached: a stuck transfer
	Aborted   Verdict = "aborted"   // ended from outside: by command, or because the agent died
	Invalid   Verdict = "invalid"   // the value must not count; Reason names the rule
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

var attemptEndedKind = kindOf([]Type{TypeAttemptEnded},
	"client",
	"see below; terminal for the attempt",
	func(r *Record, b *AttemptEnded) error {
		for i, f := range slices.Concat(b.Flows, b.Probes) {
			if err := errors.Join(attempt(b.Trial, b.Attempt, f.Flow), verdict(f.Verdict), f.checkRTT()); err != nil {
				return err
			}
			if f.Verdict == Succeeded && f.Result == nil {
				return fmt.Errorf("flow %d succeeded without a result", f.Flow)
			}
			if f.Result != nil && (f.Result.Probe != nil) != (i >= len(b.Flows)) {
				return fmt.Errorf("flow %d has the result of a probe, or probe %d that of a transfer", f.Flow, f.Flow)
			}
		}
		if b.Duration < 0 || b.Dead < 0 {
			return fmt.Errorf("duration %s, dead time %s", b.Duration, b.Dead)
		}
		return errors.Join(attempt(b.Trial, b.Attempt, 0), verdict(b.Verdict), r.only(radio.RoleClient))
	},
	func(_ Type, b *AttemptEnded) string {
		return fmt.Sprintf("trial %d (%s, iteration %d), attempt %d: %s after %.3f s%s%s", b.Trial, b.Treatment, b.Iteration, b.Attempt, b.Verdict, b.Duration.Seconds(), because(b.Reason), because(b.Message))
	})

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
	// RTT is made of all of the client's samples; nil: its protocol tells no round-trip times.
	RTT *RoundTrips `json:"rtt,omitempty"`
}

// RoundTrips are the round-trip times of one flow, as its client's protocol measured them.
type RoundTrips struct {
	// MeanUS is the mean of the smoothed ones (srtt_us) over the flow's time, in microseconds.
	MeanUS float64 `json:"mean_us"`
	// LeastUS is the least of min_rtt_us, in microseconds; nil: the protocol does not tell.
	LeastUS *int64 `json:"least_us,omitempty"`
}

func (f *FlowResult) checkRTT() error {
	if r := f.RTT; r != nil && (r.MeanUS < 0 || r.LeastUS != nil && *r.LeastUS < 0) {
		return fmt.Errorf("flow %d with a round-trip time below 0", f.Flow)
	}
	return nil
}

// TrialEnded is terminal for a trial: no further attempt follows by itself.
type TrialEnded struct {
	Trial    int     `json:"trial"`
	Attempts int     `json:"attempts"`
	Verdict  Verdict `json:"verdict"` // of the last attempt; aborted where there is none
	// Reason is [ReasonSkipped] where a person ended the trial, [ReasonNotNeeded] where the
	// plan's rule did before its first attempt.
	Reason string `json:"reason,omitempty"`
}

var trialEndedKind = kindOf([]Type{TypeTrialEnded},
	"client",
	"`trial`, `attempts`, `verdict` of the last attempt (`aborted` where a person ended the trial before its first attempt had a verdict), `reason` `skipped` of a trial that a person skipped, `not-needed` of one that the plan's [rule to stop by](plans.md#a-rule-to-stop-by) left out; terminal for the trial until a `command` to repeat it",
	func(r *Record, b *TrialEnded) error {
		return errors.Join(attempt(b.Trial, 1, 0), verdict(b.Verdict), r.only(radio.RoleClient))
	},
	func(_ Type, b *TrialEnded) string {
		return fmt.Sprintf("trial %d has ended: %s, attempts: %d%s", b.Trial, b.Verdict, b.Attempts, because(b.Reason))
	})
