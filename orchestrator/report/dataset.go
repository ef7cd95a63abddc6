package report

import (
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/plan"
	"linktrial/protocols/contract"
)

// Dataset is all that tables, figures and exports are made from: the runs of
// one campaign (or one run of it) with every attempt. The store fills it.
type Dataset struct {
	Campaign string    `json:"campaign"` // identity
	Plan     string    `json:"plan"`
	Created  time.Time `json:"created"`
	Runs     []Run     `json:"runs"` // in the order of the plan
	// Complete is false while runs of the campaign have not ended; tables say "partial".
	Complete bool `json:"complete"`
	// Published is what the plan says others have measured; shown beside ours.
	Published []PublishedRow `json:"published,omitempty"`
	// PublishedValues is the same for values that are not in the form of Table 2.
	PublishedValues []plan.PublishedValue `json:"figures,omitempty"`
	// Notes are sentences for people on what the reports leave out.
	Notes []string `json:"notes,omitempty"`
	// Words are what directors added to the report, at most one of each campaign.
	Words []Words `json:"words,omitempty"`
}

// PublishedRow is a published result, matched to ours by the names that the
// plan uses. 1 KB is 1024 bytes.
type PublishedRow struct {
	Group     string           `json:"group,omitempty"` // of the plan's groups; empty: there are none
	Where     []plan.Condition `json:"where,omitempty"` // tells the run from others of the same radio and topology
	Topology  string           `json:"topology"`
	Radio     string           `json:"radio"`
	Treatment string           `json:"treatment"`
	AvgKBps   float64          `json:"average_kb_per_s"`
	MaxKBps   float64          `json:"max_kb_per_s"`
	MinKBps   float64          `json:"min_kb_per_s"`
	SDKBps    float64          `json:"sd_kb_per_s"`
	Source    string           `json:"source"` // "breedy-2015, Table 2"
	N         int              `json:"n,omitempty"`
}

// Run is one run with its sheet and what came of it.
type Run struct {
	ID        string          `json:"id"`
	State     string          `json:"state"` // queued, preparing, running, collecting, completed, aborted, stopped
	Message   string          `json:"message,omitempty"`
	Place     string          `json:"place"` // where it ran: "emulated, real time" …
	SheetHash string          `json:"sheet_hash"`
	Sheet     *runsheet.Sheet `json:"sheet"`
	Started   time.Time       `json:"started,omitzero"`
	Ended     time.Time       `json:"ended,omitzero"`

	Trials []Trial `json:"trials"` // every trial of the sheet, in order
	// ProbeClock is of a run with probes.
	ProbeClock ProbeClock `json:"probe_clock,omitzero"`
	// Breaches of the driver contract that did not decide an attempt.
	Breaches []Breach `json:"breaches,omitempty"`
	// Looks are those of the plan's rule to stop by, in order.
	Looks []journal.Look `json:"looks,omitempty"`

	// Imported is where the run comes from, if another orchestrator measured it.
	Imported *Import `json:"imported,omitempty"`

	Provenance map[string]journal.Provenance    `json:"provenance"` // by node
	Clocks     map[string][]journal.ClockOffset `json:"clocks"`     // by node

	// Sampled is filled for reports, of at most [MostSequences] runs with samples. No export
	// has it.
	Sampled *Sampled `json:"-"`
}

// Breach is what a driver did wrong without deciding an attempt by it.
type Breach struct {
	At        time.Time `json:"at"` // the node's clock
	Node      string    `json:"node"`
	Role      string    `json:"role"`
	Treatment string    `json:"treatment"`
	// Trial, Attempt and Flow are where it happened: absent where it is of no one
	// attempt, and Flow also where it is of no one flow.
	Trial   *int   `json:"trial,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Flow    *int   `json:"flow,omitempty"`
	Message string `json:"message"`
	Log     string `json:"log,omitempty"` // the end of the driver's standard error
}

// Trial is one trial and its attempts, in order.
type Trial struct {
	Index     int             `json:"trial"`
	Iteration int             `json:"iteration"`
	Treatment string          `json:"treatment"`
	Verdict   journal.Verdict `json:"verdict,omitempty"` // empty: not ended
	Attempts  []Attempt       `json:"attempts"`
}

// Attempt is one execution of a trial.
type Attempt struct {
	Attempt int             `json:"attempt"`
	Verdict journal.Verdict `json:"verdict,omitempty"` // empty: running, or not reported yet
	Reason  string          `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	Started time.Time       `json:"started,omitzero"`

	// SizeBytes is the payload of all flows; of a flow that a time bounds, what
	// it delivered.
	SizeBytes int64 `json:"size_bytes"`
	// Elapsed is the paper's time. Of several flows: from the first start of a
	// flow's clock to the last one's end.
	Elapsed  time.Duration `json:"elapsed_ns"`
	Connect  time.Duration `json:"connect_ns"`  // the longest of the flows'
	Duration time.Duration `json:"duration_ns"` // the whole attempt
	// Ideal and CodedBound are of an emulated radio and one flow; 0: not known.
	Ideal      time.Duration `json:"ideal_ns,omitempty"`
	CodedBound time.Duration `json:"coded_bound_ns,omitempty"`
	Digest     string        `json:"digest,omitempty"` // of the payload, client's
	Verified   bool          `json:"verified"`         // the server's digest is known and equal
	Log        string        `json:"log,omitempty"`    // of a failed attempt

	Retransmits *int64 `json:"retransmits,omitempty"` // as the protocol counts them
	Timeouts    *int64 `json:"timeouts,omitempty"`
	// TransmittedBytes are of the streams of all flows, with those sent again
	// (RetransmittedBytes); nil: not known of every flow.
	TransmittedBytes   *int64 `json:"transmitted_bytes,omitempty"`
	RetransmittedBytes *int64 `json:"retransmitted_bytes,omitempty"`
	// RTTMeanUS is the mean over the time of one flow of the round-trip times that its client
	// measured, RTTLeastUS their least, in microseconds; nil: not known, or several flows.
	RTTMeanUS  *float64 `json:"rtt_mean_us,omitempty"`
	RTTLeastUS *int64   `json:"rtt_least_us,omitempty"`

	// Paths is what each radio of the client carried, of a flow that used several; of
	// several flows see Flows.
	Paths []contract.PathResult `json:"paths,omitempty"`

	Flows []Flow `json:"flows,omitempty"` // of a trial of several, or of one that a time bounds
	// Window is of several flows, all of which times bound; nil: none, or the server's
	// samples were not there when it was to be made.
	Window *CommonWindow `json:"common_window,omitempty"`
	// Probes are those of the trial, in its order. No value above is made of them.
	Probes []Probe `json:"probes,omitempty"`

	Radio *RadioReport `json:"radio,omitempty"`

	// Telemetry is filled for the exports that show it.
	Telemetry []Telemetry `json:"telemetry,omitempty"`

	// Undecided is the rules of validity of which it is not known whether they were
	// broken, each with the reason: the attempt counts.
	Undecided []string `json:"undecided,omitempty"`

	// Control is, with in-band control, what passed between each node and the
	// orchestrator during the attempt; empty: not decided yet, or control is out-of-band.
	Control []ControlCount `json:"control,omitempty"`

	// Host is what the leading node's processors kept from the attempt's programs; nil: not
	// measured.
	Host *journal.HostLoad `json:"host,omitempty"`

	// Mark is why a person excluded the value; nil: it is not excluded.
	// Verdict, Reason and Message above say so already.
	Mark *Mark `json:"-"`
}

// ControlCount is the packets between a node and the orchestrator during an attempt.
type ControlCount struct {
	Role    radio.Role `json:"role"`
	Packets int64      `json:"packets"`
	Bytes   int64      `json:"bytes"`             // with IP headers
	Unknown string     `json:"unknown,omitempty"` // why they are not known; empty: they are
}

// Mark is a person's word that the value of an attempt must not count, and
// what the journal says of that attempt.
type Mark struct {
	Reason string
	By     string // empty: not said
	At     time.Time

	Verdict        journal.Verdict
	JournalReason  string
	JournalMessage string
}

// Flow is one of the flows of an attempt.
type Flow struct {
	Treatment string          `json:"treatment"`
	Session   int             `json:"session,omitempty"` // flows of one on/off source share it
	Verdict   journal.Verdict `json:"verdict,omitempty"`
	Start     time.Duration   `json:"start_ns,omitempty"`    // after the trial's start
	Bound     time.Duration   `json:"duration_ns,omitempty"` // what ends it; 0: its size does
	Connect   time.Duration   `json:"connect_ns"`
	Elapsed   time.Duration   `json:"elapsed_ns"`
	SizeBytes int64           `json:"size_bytes"` // delivered, where it succeeded
	// LastBytes is at most what a flow that did not succeed had delivered when its last
	// sample was taken, LastAt after its clock's start; 0: there is none. No export has them.
	LastBytes int64         `json:"-"`
	LastAt    time.Duration `json:"-"`

	Retransmits *int64 `json:"retransmits,omitempty"`
	Timeouts    *int64 `json:"timeouts,omitempty"`

	TransmittedBytes   *int64   `json:"transmitted_bytes,omitempty"` // these four as of an attempt
	RetransmittedBytes *int64   `json:"retransmitted_bytes,omitempty"`
	RTTMeanUS          *float64 `json:"rtt_mean_us,omitempty"`
	RTTLeastUS         *int64   `json:"rtt_least_us,omitempty"`

	Paths []contract.PathResult `json:"paths,omitempty"` // as of an attempt
}

// RadioReport is what the emulated radio counted, summed over its hops.
type RadioReport struct {
	SentPackets    int64   `json:"sent_packets"`
	LostPackets    int64   `json:"lost_packets"`
	DroppedPackets int64   `json:"dropped_packets"`
	BusyShare      float64 `json:"busy_share"`
	// Late is how late the emulator gave packets out; nil: not measured.
	Late *radiocontrol.Late `json:"late,omitempty"`
}

// Telemetry is one metric that a radio, or the laptop beside it, reported during an
// attempt. Of a number that only grows it is the growth a second.
type Telemetry struct {
	Node   string `json:"node"`
	Role   string `json:"role"`
	Source string `json:"source"` // of the radio's profile
	Kind   string `json:"-"`      // of the source
	Metric string `json:"figure"` // snr, in_bytes, latitude …
	Unit   string `json:"unit,omitempty"`
	// Readings is how many lay within the attempt. Where none did, the values
	// are those of the last reading before it and the first one after it, as of
	// sources that are read between trials.
	Readings int     `json:"readings"`
	Minimum  float64 `json:"minimum"`
	Mean     float64 `json:"mean"`
	Maximum  float64 `json:"maximum"`
}
