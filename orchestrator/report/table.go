package report

import (
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// RunTable is one run summarised, a row a treatment. Throughputs are in KB/s,
// 1 KB being 1024 bytes; every interval has a level of 95 %. A field that
// is nil has no value.
type RunTable struct {
	Run           string `json:"run"`
	State         string `json:"state"`
	Message       string `json:"message,omitempty"`
	Place         string `json:"place"`
	Radio         string `json:"radio"`
	RadioTitle    string `json:"radio_title"`
	Topology      string `json:"topology"`
	TopologyTitle string `json:"topology_title"`
	SizeBytes     int64  `json:"size_bytes"`         // of one transfer
	Group         string `json:"group,omitempty"`    // of the plan's groups
	Settings      string `json:"settings,omitempty"` // what the plan's sweep has set, for people
	Iterations    int    `json:"iterations"`
	Order         string `json:"order"`
	SheetHash     string `json:"sheet_hash"`
	// Imported is where the run comes from, if another orchestrator measured it.
	Imported *Import `json:"imported,omitempty"`
	// Partial: the run was not completed, or trials of it have not ended.
	Partial bool `json:"partial"`
	// Reference is the treatment that the others are held against: the first
	// that is not missing.
	Reference string `json:"reference"`
	// referenceLabel is set where the rows do not have the reference.
	referenceLabel string
	// leftOutNotEnded are the trials of rows that were left out, of the run all the same.
	leftOutNotEnded int
	// Bandwidth is the rate of the slowest hop on the way of the data, as emulated.
	BandwidthBitsPerSecond *float64 `json:"bandwidth_bits_per_second,omitempty"`
	Rows                   []Row    `json:"rows"`
	// Conclusion is a sentence for people: which treatment leads the next one, by how
	// much, and whether the trials decide it; empty: fewer than two have values.
	Conclusion string `json:"conclusion,omitempty"`
	// Stopping is of a run whose plan has a rule to stop by.
	Stopping *Stopping `json:"stopping,omitempty"`
	Lead     Lead      `json:"-"` // the conclusion has it with its statistics
	// Notes are sentences on what to know before pairs of treatments are read: whether
	// treatments differ as a whole, a drift over the iterations, a dependence between them.
	Notes []string `json:"notes,omitempty"`
	// DriftNote is that of the notes which is about a drift; empty: none is found.
	DriftNote string `json:"-"`
	// Probes are apart from the treatments that are compared.
	Probes     []ProbeRow  `json:"probes,omitempty"`
	ProbeClock *ProbeClock `json:"probe_clock,omitempty"`
	// Baseline is the round-trip time that probes without transfers beside them measured in
	// both directions; nil: there were none, or no treatment is over TCP.
	Baseline *Baseline `json:"baseline_rtt,omitempty"`
	// Requirements are the plan's, each with what the run's results say of it.
	Requirements []Judgement `json:"requirements,omitempty"`
	// BoundsUnknown is why transfers on emulated radios have no share of Ideal and of
	// the coded bound, a sentence; empty: they have, or nobody expects it.
	BoundsUnknown string `json:"bounds_unknown,omitempty"`
	// ControlNote is a sentence about the control packets during attempts that count; empty:
	// control is not in-band.
	ControlNote string `json:"control_note,omitempty"`
	// HostNote is a sentence about attempts that count and ran on a starved node; empty:
	// there are none.
	HostNote string `json:"host_note,omitempty"`
}

// Row is one treatment in one run. A trial is valid where its last attempt
// succeeded and the server's digest of the payload was the client's.
type Row struct {
	Treatment string `json:"treatment"`
	Label     string `json:"label"`
	Protocol  string `json:"protocol"`
	// Via is the relay processes that its flows pass, for people: "split 1.0.0 at the relay".
	Via     string `json:"via,omitempty"`
	Missing string `json:"missing,omitempty"` // why the treatment could not be run

	Trials        int       `json:"trials"` // of the sheet, without those that are not needed
	Valid         int       `json:"valid"`
	Failed        int       `json:"failed"`
	Excluded      int       `json:"excluded"` // ended without an outcome of the protocol
	NotEnded      int       `json:"not_ended"`
	NotNeeded     int       `json:"not_needed,omitempty"` // beside Trials: those that a rule to stop by left out
	ExtraAttempts int       `json:"extra_attempts"`       // beyond the first of each trial
	Failures      []Failure `json:"failures,omitempty"`
	FailedShare   *float64  `json:"failed_share"`      // of the valid and the failed trials
	FailedCI      *Range    `json:"failed_share_ci95"` // Wilson

	AverageKBps *float64 `json:"average_kb_per_s"`
	MaxKBps     *float64 `json:"max_kb_per_s"`
	MinKBps     *float64 `json:"min_kb_per_s"`
	SDKBps      *float64 `json:"sd_kb_per_s"` // sample, n−1
	MedianKBps  *float64 `json:"median_kb_per_s"`
	MeanCI      *Range   `json:"average_ci95_kb_per_s"`           // Student's t
	BootstrapCI *Range   `json:"average_bootstrap_ci95_kb_per_s"` // BCa; all resamples, or 10 000 seeded ones
	// Percentiles, interpolated between the two nearest trials.
	P05KBps *float64 `json:"p05_kb_per_s"`
	P25KBps *float64 `json:"p25_kb_per_s"`
	P75KBps *float64 `json:"p75_kb_per_s"`
	P95KBps *float64 `json:"p95_kb_per_s"`

	ElapsedSeconds *float64 `json:"elapsed_mean_s"`
	ConnectSeconds *float64 `json:"connect_mean_s"`
	// ShareOfIdeal is the mean over the valid trials of Ideal's time over the
	// time from the first connect attempt to the acknowledgement: Ideal's clock
	// starts with the channel's, before the connect.
	ShareOfIdeal *float64 `json:"share_of_ideal"`
	// ShareOfCodedBound is the same of the coded bound.
	ShareOfCodedBound *float64 `json:"share_of_coded_bound"`
	// IdealKBps and CodedBoundKBps are the means over the same trials as the average
	// of what the bounds would have reached by the transfer's clock ([Limits]); nil
	// where they are not known of all of these trials.
	IdealKBps      *float64 `json:"ideal_kb_per_s"`
	CodedBoundKBps *float64 `json:"coded_bound_kb_per_s"`
	// Normalised is the average throughput over the bandwidth (decola-2006).
	Normalised *float64 `json:"normalised_throughput"`
	// MoreIterations is how many further ones would bring the average's interval
	// within 5 % to each side, were it to stay as it is.
	MoreIterations *int `json:"more_iterations_for_5_percent"`

	AverageKbitPS *float64 `json:"average_kbit_per_s"` // thousands of bits
	AverageMbitPS *float64 `json:"average_mbit_per_s"` // millions of bits
	// Retransmits and Timeouts are means over the valid trials that count them.
	Retransmits *float64 `json:"retransmits_mean"`
	Timeouts    *float64 `json:"timeouts_mean"`
	// RFC6349 is of treatments over TCP from end to end; nil: of others, or none is known.
	RFC6349 *RFC6349 `json:"rfc6349,omitempty"`
	// Of trials of several flows: the mean throughput of a flow, Jain's index
	// among them, and each treatment's flows apart where they mix.
	Flows    int         `json:"flows,omitempty"` // of one trial; on/off sources count once
	FlowKBps *float64    `json:"flow_average_kb_per_s,omitempty"`
	FlowCI   *Range      `json:"flow_average_ci95_kb_per_s,omitempty"`
	Jain     *float64    `json:"jain_index,omitempty"`
	Parts    []FlowShare `json:"parts,omitempty"`

	Comparison *Comparison `json:"comparison,omitempty"`
	Published  *Published  `json:"published,omitempty"`
	// Delivery is when the payload was there, over all trials that tell of the protocol;
	// nil: none has, times bound the transfers, or the sheet is not known.
	Delivery *Delivery `json:"delivery,omitempty"`
}

// IdealSource is what the ideal time of a TCP transfer time ratio follows from.
type IdealSource string

const (
	// IdealOfRadio is the time of Ideal on the emulated radio's channel realisation.
	IdealOfRadio IdealSource = "ideal"
	// IdealOfCapacity is the payload over the capacity that a search of the run found, less
	// the headers of TCP and IP in packets of the path's MTU (RFC 6349, section 4.1.1).
	IdealOfCapacity IdealSource = "capacity"
)

// RFC6349 are the metrics of RFC 6349 over the valid trials of a treatment; nil of each: no
// trial has what it is made of.
type RFC6349 struct {
	TransferTimeRatio  *Spread     `json:"transfer_time_ratio,omitempty"` // section 4.1
	IdealFrom          IdealSource `json:"ideal_from,omitempty"`
	EfficiencyPercent  *Spread     `json:"efficiency_percent,omitempty"`   // section 4.2
	BufferDelayPercent *Spread     `json:"buffer_delay_percent,omitempty"` // section 4.3
	// BaselineFrom is where the baseline of the buffer delay is from (section 3.2.1).
	BaselineFrom BaselineSource `json:"baseline_from,omitempty"`
	// LeastAboveBaselinePercent is by how much the least round-trip times of the transfers are
	// above the run's baseline; nil: the run has none.
	LeastAboveBaselinePercent *Spread `json:"least_rtt_above_baseline_percent,omitempty"`
}

// BaselineSource is where the baseline round-trip time of a transfer over TCP is from.
type BaselineSource string

// The sources, the better one first.
const (
	BaselineOfProbe    BaselineSource = "probe"    // a probe of the run without transfers beside it
	BaselineOfTransfer BaselineSource = "transfer" // the least one of the transfer itself
)

// Baseline is a run's round-trip time without load (RFC 6349, section 3.2.1).
type Baseline struct {
	RTTMS *float64  `json:"rtt_ms"`
	Probe string    `json:"probe"` // the treatment that measured it
	Label string    `json:"label"`
	Trial int       `json:"trial"`       // of the run
	At    time.Time `json:"at,omitzero"` // when that trial's attempt began, by the client's clock

	rttUS float64 // not rounded
}

// Spread is a metric over trials.
type Spread struct {
	Trials  int      `json:"trials"` // that have it
	Mean    *float64 `json:"mean"`
	Least   *float64 `json:"least"`
	Largest *float64 `json:"largest"`
}

// Delivery is the time from the first attempt to connect until the payload was there, over
// valid and failed trials alike: one that failed was not delivered by the horizon, which is
// the limit of a transfer unless the plan states another.
type Delivery struct {
	Trials         int      `json:"trials"` // valid and failed
	HorizonSeconds float64  `json:"horizon_s"`
	Share          *float64 `json:"share"`      // delivered by the horizon
	ShareCI        *Range   `json:"share_ci95"` // Wilson
	// MeanSeconds is the restricted mean: of the time or the horizon, whichever is shorter.
	MeanSeconds *float64 `json:"mean_s"`
	MeanCI      *Range   `json:"mean_ci95_s"` // Student's t, by Greenwood's variance
	// MedianSeconds is by when half were delivered (Kaplan and Meier); nil: fewer were by the
	// horizon. Its interval is that of Brookmeyer and Crowley; an end of nil is beyond it.
	MedianSeconds *float64 `json:"median_s"`
	MedianLow     *float64 `json:"median_ci95_low_s"`
	MedianHigh    *float64 `json:"median_ci95_high_s"`
	// GoodputKBps is what all these trials delivered over the time that they took.
	GoodputKBps *float64 `json:"goodput_kb_per_s"`
	// Curve is the share delivered by a time, a step at each time up to the horizon at which
	// a trial was delivered (Kaplan and Meier; nothing is censored before the horizon).
	Curve      []DeliveryStep      `json:"curve"`
	Difference *DeliveryDifference `json:"difference,omitempty"`
}

// DeliveryStep is where more trials had been delivered.
type DeliveryStep struct {
	Seconds   float64  `json:"s"`
	Delivered int      `json:"delivered"` // trials, by then
	Share     *float64 `json:"share"`
	ShareCI   *Range   `json:"share_ci95"` // Wilson, for this time alone
}

// DeliveryDifference holds restricted means against the reference's, over the iterations in
// which both treatments have a valid or a failed trial.
type DeliveryDifference struct {
	Reference     string   `json:"reference"`
	Pairs         int      `json:"pairs"`
	SoonerSeconds *float64 `json:"sooner_s"` // than the reference; negative: later
	SoonerCI      *Range   `json:"sooner_ci95_s"`
	P             *float64 `json:"sooner_t_p"` // Student's for pairs, which SoonerCI inverts
	PHolm         *float64 `json:"sooner_t_p_holm"`
}

// FlowShare is one treatment's flows in trials of several treatments.
type FlowShare struct {
	Treatment   string   `json:"treatment"`
	Label       string   `json:"label"`
	Flows       int      `json:"flows"` // of one trial
	AverageKBps *float64 `json:"flow_average_kb_per_s"`
	CI          *Range   `json:"flow_average_ci95_kb_per_s"`
}

// Failure counts attempts that gave no valid value, by what ended them.
type Failure struct {
	Verdict  journal.Verdict `json:"verdict"`
	Reason   string          `json:"reason,omitempty"`
	Attempts int             `json:"attempts"`
}

// Comparison holds a treatment against the reference, over the iterations in
// which both are valid.
type Comparison struct {
	Reference      string   `json:"reference"`
	Pairs          int      `json:"pairs"`
	DifferenceKBps *float64 `json:"difference_kb_per_s"`
	DifferenceCI   *Range   `json:"difference_ci95_kb_per_s"`
	// DifferenceP is of the test that DifferenceCI inverts, Student's for pairs.
	DifferenceP *float64 `json:"difference_t_p"`
	// Ratio is the estimate of Hodges and Lehmann; RatioCI inverts the signed-rank
	// test that W, P and RankBiserial are of. There is none of fewer than six pairs.
	Ratio   *float64 `json:"ratio"`
	RatioCI *Range   `json:"ratio_ci95"`
	// GainPercent is how much less time than the reference's the transfers took
	// on average (decola-2006, equation 8).
	GainPercent *float64 `json:"gain_percent"`
	GainCI      *Range   `json:"gain_ci95_percent"`
	// GainWholePercent is the same of connecting and transferring together.
	GainWholePercent *float64 `json:"gain_with_connect_percent"`
	W                *float64 `json:"wilcoxon_w"`
	P                *float64 `json:"wilcoxon_p"`      // two-sided
	PHolm            *float64 `json:"wilcoxon_p_holm"` // corrected for the comparisons of the run
	Exact            bool     `json:"wilcoxon_exact"`
	RankBiserial     *float64 `json:"rank_biserial"`
}

// Published is a published result and how far ours is from it, in percent of it.
type Published struct {
	PublishedRow
	AvgDeviation *float64 `json:"average_deviation_percent"`
	MaxDeviation *float64 `json:"max_deviation_percent"`
	MinDeviation *float64 `json:"min_deviation_percent"`
	SDDeviation  *float64 `json:"sd_deviation_percent"`
}

// ProbeRow is one probe in one run: beside the transfers of one treatment, or
// alone. Delays and jitter are in milliseconds, corrected by the clocks' offset;
// where the clocks are not known, delays are those above the shortest of each probe.
type ProbeRow struct {
	Probe string     `json:"probe"` // the treatment that it is of
	From  radio.Role `json:"from"`
	To    radio.Role `json:"to"`
	Label string     `json:"label"` // with the direction, where the run has probes from the server
	DSCP  int        `json:"dscp,omitempty"`
	// Beside is the treatment or mix whose transfers ran meanwhile; empty: none did.
	Beside      string `json:"beside,omitempty"`
	BesideLabel string `json:"beside_label,omitempty"`

	Trials   int       `json:"trials"`   // of the sheet
	Measured int       `json:"measured"` // whose last attempt has the probe's values
	Failures []Failure `json:"failures,omitempty"`
	// FailedTransfers is how many of the measured ran beside a transfer without a valid value.
	FailedTransfers int `json:"failed_transfers,omitempty"`
	// Unloaded is how many others had values, but no transfer beside them, because it never
	// connected: they are in none of the row's values.
	Unloaded int `json:"unloaded,omitempty"`

	// Offered is what the pattern offered: Sent, and Unsent, which the congestion
	// control of the probe's protocol did not let go.
	Offered          int64    `json:"offered_packets"`
	Unsent           int64    `json:"unsent_packets"`
	Sent             int64    `json:"sent_packets"`
	Received         int64    `json:"received_packets"`
	Lost             int64    `json:"lost_packets"`
	LossShare        *float64 `json:"loss_share"`
	LossBursts       int64    `json:"loss_bursts"`
	LongestLossBurst int64    `json:"longest_loss_burst"`
	Reordered        int64    `json:"reordered_packets"`
	Duplicated       int64    `json:"duplicated_packets"`

	// The least and the longest of all packets; the others are means over the trials.
	DelayMinMS  *float64 `json:"delay_min_ms"`
	DelayMeanMS *float64 `json:"delay_mean_ms"`
	DelayMeanCI *Range   `json:"delay_mean_ci95_ms"`
	DelayP50MS  *float64 `json:"delay_p50_ms"`
	DelayP95MS  *float64 `json:"delay_p95_ms"`
	DelayP99MS  *float64 `json:"delay_p99_ms"`
	DelayMaxMS  *float64 `json:"delay_max_ms"`
	JitterMS    *float64 `json:"jitter_ms"`
	JitterMaxMS *float64 `json:"jitter_max_ms"`
	// UncertaintyMS is that of every delay; nil: the clocks were not compared.
	UncertaintyMS *float64 `json:"uncertainty_ms"`
	// ProcessTimes: packets arrived when the driver got them, so that delays contain
	// what it waited for a processor, which nothing bounds.
	ProcessTimes bool `json:"process_times,omitempty"`
	// PercentilesMS are the 101 percentiles from 0 to 100 of the delays of all packets
	// that arrived in the measured trials; absent where a driver reports none.
	PercentilesMS []float64 `json:"delay_percentiles_ms,omitempty"`

	// RFactor and MOS are the quality of voice by the E-model ([Run.Voice]), means over the
	// trials; nil: the probe is no speech, or the clocks are not known.
	RFactor *float64 `json:"r_factor,omitempty"`
	MOS     *float64 `json:"mos,omitempty"`
	// PlayoutMS is the delay at which the de-jitter buffer ends that they are for, the mean over
	// the trials.
	PlayoutMS *float64 `json:"-"`
	// Capacity is what searches for it found; nil: there was none.
	Capacity *CapacityRow `json:"capacity,omitempty"`
	// Messages are those of a probe of messages, by size, the smallest first.
	Messages []MessagesRow `json:"messages,omitempty"`
}

// MessagesRow is what became of a probe's messages of one size ([contract.MessagesOfSize]):
// counts over all trials, times from the first packet's sending to the last one's arrival.
type MessagesRow struct {
	Bytes          int64    `json:"bytes"`
	Packets        int64    `json:"packets"` // of one message
	Sent           int64    `json:"sent"`
	Delivered      int64    `json:"delivered"` // all packets arrived; none is sent again
	DeliveredShare *float64 `json:"delivered_share"`
	// DeliveredCI is Wilson's interval, as if messages were lost independently.
	DeliveredCI *Range `json:"delivered_share_ci95"`
	// The least and the longest of all messages; percentiles are means over the trials.
	TimeMinMS *float64 `json:"time_min_ms"`
	TimeP50MS *float64 `json:"time_p50_ms"`
	TimeP95MS *float64 `json:"time_p95_ms"`
	TimeMaxMS *float64 `json:"time_max_ms"`
}

// CapacityRow is what the searches of one probe found ([contract.Capacity]): means over
// the trials, in bit/s of IP packets where nothing else is said.
type CapacityRow struct {
	Measured      int      `json:"measured"` // trials that found a capacity
	MaximumBPS    *float64 `json:"maximum_bps"`
	MaximumCI     *Range   `json:"maximum_bps_ci95"`
	MeanBPS       *float64 `json:"mean_bps"`
	PayloadBPS    *float64 `json:"payload_bps"`
	BottleneckBPS *float64 `json:"bottleneck_bps"` // of the trials in which packets waited; nil: of none
	// At the rate that was found, in RateBPS.
	RateBPS     *float64 `json:"rate_bps"`
	LossShare   *float64 `json:"loss_share"`
	DelayMeanMS *float64 `json:"delay_mean_ms"`
	DelayP95MS  *float64 `json:"delay_p95_ms"`
	PacketBytes *float64 `json:"packet_bytes"`
	IntervalMS  *float64 `json:"interval_ms"` // least length of a sub-interval
	// LargestPayloadBytes is the least of the trials' ones; 0: not known.
	LargestPayloadBytes int64 `json:"largest_payload_bytes"`
	// Unfinished is in how many trials the time was up before the search had come to
	// 1 %, and Highest in how many the highest rate allowed was not too much.
	Unfinished int `json:"unfinished"`
	Highest    int `json:"highest"`
}

// Lead is a conclusion without its statistics, for lists of campaigns.
type Lead struct {
	Text    string // without a full stop
	Leader  string // label; empty: treatments are not compared, or the difference is noise
	Decided bool
}

// RequiredOutcome is what results say of a requirement.
type RequiredOutcome string

// The outcomes. An interval decides: pass where the whole of it meets the bounds, fail where
// none of it does.
const (
	Pass      RequiredOutcome = "pass"
	Fail      RequiredOutcome = "fail"
	Undecided RequiredOutcome = "undecided" // by its interval, or there is none, or the run is partial
)

// Judgement is what the results of a run say of one requirement.
type Judgement struct {
	runsheet.Requirement
	Label   string          `json:"label"` // of the treatment, or of the probe and what it runs beside
	Outcome RequiredOutcome `json:"outcome"`
	// Value and CI are in the unit of the bounds; nil: there is none.
	Value *float64 `json:"value"`
	CI    *Range   `json:"ci95"`
	// Trials are those that the value is of; of ratio_to the pairs.
	Trials int `json:"trials"`
	// Text says for people what was found and what is required.
	Text string `json:"text"`
}
