package radio

import "time"

// ChannelModel names an error process.
type ChannelModel string

const (
	// ChannelPerfect loses nothing.
	ChannelPerfect ChannelModel = "perfect"
	// ChannelUniform loses packets independently with probability Loss.
	ChannelUniform ChannelModel = "uniform"
	// ChannelGilbertElliott is two states on time slots with a loss probability each.
	ChannelGilbertElliott ChannelModel = "gilbert-elliott"
	// ChannelMarkov is the two-state chain of decola-2006, section 3.2: every
	// block sent in the good state arrives, every block sent in the bad state
	// is lost. See [Channel.Alpha] for how packets meet slots.
	ChannelMarkov ChannelModel = "markov"
	// ChannelOnOff alternates between periods of drawn length with a higher and
	// a lower loss probability (lttcp-2006, section III).
	ChannelOnOff ChannelModel = "on-off"
	// ChannelHiddenMarkov is bit errors from a hidden Markov model
	// (dantas-2011, section VI.B).
	ChannelHiddenMarkov ChannelModel = "hidden-markov"
	// ChannelOutages loses every packet during stated times.
	ChannelOutages ChannelModel = "outages"
	// ChannelTrace follows recorded rate, delay and loss over time.
	ChannelTrace ChannelModel = "trace"
	// ChannelMobility follows the distance between the link's ends. It exists
	// in profiles only: Resolve turns it into a trace.
	ChannelMobility ChannelModel = "mobility"
	// ChannelCombined is several processes at once: a packet is lost when any
	// of them loses it; of traces among them, the lowest rate and the sum of
	// the delays hold.
	ChannelCombined ChannelModel = "combined"
)

// Channel is an error process of one link direction. The process runs in time,
// also while nobody sends: an outage passes with time, not with packets. Only
// the fields of its model are set.
type Channel struct {
	Model ChannelModel `json:"model"`
	// Slot is the length of a time slot (gilbert-elliott, markov). 0: the
	// airtime of a full-sized packet with its frame, at the link's rate.
	Slot time.Duration `json:"slot_ns,omitempty"`

	// Loss is the probability that a packet is lost (uniform), or its mean over
	// both kinds of period (on-off).
	Loss float64 `json:"loss,omitempty"`

	// Gilbert–Elliott: per-slot transition probabilities and per-packet loss in each state.
	GoodToBad float64 `json:"good_to_bad,omitempty"`
	BadToGood float64 `json:"bad_to_good,omitempty"`
	LossGood  float64 `json:"loss_good,omitempty"`
	LossBad   float64 `json:"loss_bad,omitempty"`

	// Alpha and Beta are the markov model's P(good → bad) and P(bad → good) per
	// slot; the long-run share of bad slots is Alpha/(Alpha+Beta).
	//
	// With a stated Slot, a packet is lost when any slot that its transmission
	// overlaps is bad. With Slot 0 a slot is one block, as in the paper:
	// the state of the slot in which a packet's transmission starts decides whether
	// it is lost, so that the loss is Alpha/(Alpha+Beta) for any sender (equation 4).
	Alpha float64 `json:"alpha,omitempty"`
	Beta  float64 `json:"beta,omitempty"`

	OnOff    *OnOff        `json:"on_off,omitempty"`
	Hidden   *HiddenMarkov `json:"hidden_markov,omitempty"`
	Outages  *Outages      `json:"outages,omitempty"`
	Trace    *Trace        `json:"trace,omitempty"`
	Mobility *Mobility     `json:"mobility,omitempty"`
	Parts    []Channel     `json:"parts,omitempty"` // of combined; none is combined itself
}

// OnOff is the periods of the on-off model: they alternate, the first kind is
// drawn with equal chance, each length is drawn uniformly from PeriodMin to
// PeriodMax, and a packet that starts in a period is lost with Channel.Loss
// times the period's factor.
type OnOff struct {
	PeriodMin time.Duration `json:"period_min_ns"`
	PeriodMax time.Duration `json:"period_max_ns"`
	OnFactor  float64       `json:"on_factor"`  // 1.5 in lttcp-2006
	OffFactor float64       `json:"off_factor"` // 0.5 in lttcp-2006
}

// HiddenMarkov is a chain of states that moves once a bit, and a probability
// for each state that the bit is wrong. A bit lasts 1/(rate · code rate): the
// chain runs at the rate of user bits after the FEC, also while nobody sends.
// With a Reed–Solomon code, which corrects these bits, it runs at the rate of
// bits on the channel.
// A frame (a packet, where the link has no framing) with a wrong bit is lost.
// With one state, bit errors are independent.
type HiddenMarkov struct {
	// Transition is the probability of the next state, by row of the present one.
	Transition [][]float64 `json:"transition"`
	// BitErrorRates is each state's probability of a wrong bit. Where the
	// profile gave a target, they were fitted to it when it was read.
	BitErrorRates []float64 `json:"bit_error_rates"`
}

// Outages is times at which nothing gets through. A packet is lost when its
// transmission overlaps one.
type Outages struct {
	// Times in ascending order, not overlapping; since the trial's start.
	Times []Outage `json:"times,omitempty"`
	// Or, with Period > 0: from Offset on, every Period, for Length.
	Period time.Duration `json:"period_ns,omitempty"`
	Length time.Duration `json:"length_ns,omitempty"`
	Offset time.Duration `json:"offset_ns,omitempty"`
	// Loss is the probability that a packet that overlaps an outage is lost; 1 unless stated.
	Loss float64 `json:"loss"`
}

// Outage is from Start to before End.
type Outage struct {
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
}

// Trace is rate, delay and loss over time since the trial's start, in even
// steps: element i holds from i·Step to before (i+1)·Step. After the last, the
// trace begins anew where Repeat is set, and else its last element holds.
type Trace struct {
	Step   time.Duration `json:"step_ns"`
	Repeat bool          `json:"repeat,omitempty"`
	// RateBitsPerSecond replaces the link's rate; at 0 nothing is sent, and
	// packets in the queue wait. Empty: the link's own rate holds throughout. A
	// transmission keeps the rate at which it started.
	RateBitsPerSecond []float64 `json:"rate_bits_per_second,omitempty"`
	// Delay replaces the link's; a packet never overtakes an earlier one.
	// Empty: the link's own.
	Delay []time.Duration `json:"delay_ns,omitempty"`
	// Loss is the probability that a packet whose transmission starts then is lost.
	Loss []float64 `json:"loss"`
}

// At is the index of the element that holds at a time, 0 for times before 0.
func (t *Trace) At(at time.Duration) int {
	n := len(t.Loss)
	if at < 0 || n == 0 || t.Step <= 0 {
		return 0
	}
	i := int64(at / t.Step)
	if t.Repeat {
		return int(i % int64(n))
	}
	return int(min(i, int64(n-1)))
}
