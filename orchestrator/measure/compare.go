package measure

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"linktrial/orchestrator/report"
)

// Bounds of the time that a comparison may take, and what it takes unless another is named.
const (
	LeastBudget   = time.Minute
	MostBudget    = 24 * time.Hour
	DefaultBudget = 20 * time.Minute
)

// decisive is the difference, as a share, that a comparison should find.
const decisive = 0.2

// Comparison is what is to be compared, and over which link.
type Comparison struct {
	Campaign        string // of the measurement
	Radio, Topology string // names in the catalogue
	Budget          time.Duration
	Protocols       []Protocol // the first is the reference
	LeftOut         []string   // sentences of protocols that are not among these
}

// Proposal is a plan that compares protocols, with what it can decide.
type Proposal struct {
	Plan      // its bound is that of the run whose every transfer takes the limit
	Labels    []string
	SizeBytes int64
	// Iterations are as many as fit into the budget, and Estimated is how long all take by
	// what was measured, preparing the nodes included.
	Iterations int
	Estimated  time.Duration
	// Smallest is the smallest difference found with 80 % chance, as a share; +Inf: none.
	Smallest float64
	Decides  bool // one of 20 % is
	// DecisiveBudget is what a comparison takes that finds a difference of 20 %; 0: none of
	// at most [MostBudget] does.
	DecisiveBudget time.Duration
	Sentences      []string // all of this for people

	least int // iterations that find any difference
}

// The rule of a transfer's size: that it takes so long, and so many round trips, with the
// fastest protocol that was measured. Slow start of TCP takes about log2(window) round trips:
// ten up to 1000 packets a round trip, of which half that many is lost against a transfer
// at full rate; starting a driver takes tenths of a second. Both are then less than a quarter.
const (
	leastTime   = 5 * time.Second
	roundTrips  = 20
	packetBytes = 1500 // of a full packet, whose time on the link is part of a round trip
	// leastSize is more than twice what TCP sends before its first acknowledgement (10
	// segments, RFC 6928), so that congestion control paces more than half. The smallest
	// transfer of the papers has 3 KB (de Cola 2006).
	leastSize = 32 << 10
)

// What is reckoned beside the transfers.
const (
	// preparing is what the nodes take before the first trial and after the last one.
	preparing = 20 * time.Second
	// starting is what drivers take to start and end, and the nodes to agree on a trial: 0.4 s
	// over emulated radios, and laptops may be slower. The connection takes handshakeTrips
	// round trips more.
	starting       = 700 * time.Millisecond
	handshakeTrips = 4
	// reserve is the share of the budget that is left for transfers slower than those measured.
	reserve = 0.1
	// unmeasuredShare of the capacity is taken for the goodput where no transfer was measured.
	unmeasuredShare = 0.9
)

// Limits of a trial.
const (
	// slower is the margin of the transfer's limit above the slowest protocol that was
	// measured. But tooSlow times the fastest one's time is enough: what takes longer has
	// lost, and its timeouts decide so.
	slower, tooSlow = 3, 5
	leastConnect    = 10 * time.Second
	// lossyConnect is the connection's limit where more than lossy of the packets are lost:
	// TCP repeats its SYN after 1, 3, 7, 15 and 31 s (RFC 6298).
	lossyConnect, lossy = 35 * time.Second, 0.05
	connectTrips        = 10
	// handshakeBytes is more than any handshake has each way; QUIC's certificate and key
	// exchange are the largest. Its time over the slower way counts handshakeMargin times.
	handshakeBytes, handshakeMargin = 8 << 10, 3
)

// basis is what of a measurement a comparison follows from.
type basis struct {
	thereBPS, worstBPS float64
	roundTrip          time.Duration // of a full packet; 0: not known
	loss               float64       // of the worse way, as a share
	payload            int64         // largest of UDP that both ways carry, in bytes; 0: not known
	rates              map[string]float64
	failed             map[string]bool // protocols whose transfer was not carried
	fastest, slowest   float64         // bytes/s
	fastestLabel       string
}

// basisOf reads it from the values.
func basisOf(v *Values) (b basis, err error) {
	worst, ok := v.FoundBPS()
	if !ok || worst <= 0 {
		return b, errors.New("the measurement found no capacity in both directions, by which a comparison would be made")
	}
	b = basis{thereBPS: *v.Capacity[There].Capacity.MeanBPS, worstBPS: worst, rates: map[string]float64{}, failed: map[string]bool{}}
	for w, p := range v.Capacity {
		if n := p.Capacity.LargestPayloadBytes; n > 0 && (b.payload == 0 || n < b.payload) {
			b.payload = n
		}
		if p := v.Idle[w]; p != nil && p.Sent > 0 {
			b.loss = max(b.loss, float64(p.Lost)/float64(p.Sent))
		}
	}
	b.addTransfers(v.Transfers)
	b.roundTrip = v.roundTrip()
	if b.roundTrip > 0 {
		b.roundTrip += seconds(packetBytes * 8 / b.thereBPS)
	}
	return b, nil
}

func (b *basis) addTransfers(rows []report.Row) {
	for i := range rows {
		r := &rows[i]
		if r.Valid == 0 || r.AverageKBps == nil || *r.AverageKBps <= 0 {
			b.failed[r.Treatment] = true
			continue
		}
		rate := *r.AverageKBps * 1024
		b.rates[r.Treatment] = rate
		if rate > b.fastest {
			b.fastest, b.fastestLabel = rate, r.Label
		}
		if b.slowest == 0 || rate < b.slowest {
			b.slowest = rate
		}
	}
	if b.fastest == 0 {
		b.fastest = unmeasuredShare * b.thereBPS / 8
	}
}

// roundTrip is the delay of small packets there and back on the idle link: their medians, or
// where the clocks were not compared the time in which TCP connected; 0: neither is known.
func (v *Values) roundTrip() time.Duration {
	sum := 0.0
	for _, p := range v.Idle {
		if p == nil || p.DelayP50MS == nil || p.UncertaintyMS == nil {
			sum = math.NaN()
			break
		}
		sum += *p.DelayP50MS
	}
	if !math.IsNaN(sum) {
		return milliseconds(max(0, sum))
	}
	for i := range v.Transfers {
		if r := &v.Transfers[i]; r.Treatment == tcp && r.ConnectSeconds != nil {
			return seconds(*r.ConnectSeconds)
		}
	}
	return 0
}

func seconds(s float64) time.Duration       { return time.Duration(s * float64(time.Second)) }
func milliseconds(ms float64) time.Duration { return seconds(ms / 1e3) }

// size is that of a transfer, in bytes.
func (b *basis) size() int64 {
	took := max(leastTime, roundTrips*b.roundTrip)
	want := max(leastSize, b.fastest*took.Seconds())
	for step := int64(leastSize); ; step *= 2 { // 32, 48, 64, 96, 128, … KiB
		for _, n := range []int64{step, step + step/2} {
			if float64(n) >= want {
				return n
			}
		}
	}
}

// limits are those of a connection and of a transfer.
func (b *basis) limits(size int64) (connect, transfer time.Duration) {
	connect = max(leastConnect, connectTrips*b.roundTrip, seconds(handshakeMargin*handshakeBytes*8/b.worstBPS))
	if b.loss > lossy {
		connect = max(connect, lossyConnect)
	}
	transfer = seconds(tooSlow * float64(size) / b.fastest)
	if b.slowest > 0 && len(b.failed) == 0 {
		transfer = min(transfer, seconds(slower*float64(size)/b.slowest))
	}
	return upTo(connect, 5*time.Second), upTo(transfer, 5*time.Second)
}

// upTo rounds up to a multiple.
func upTo(d, step time.Duration) time.Duration { return (d + step - 1) / step * step }

// trial is how long one trial of a protocol takes: what was not measured is taken to be as
// slow as the slowest that was, and what failed to take the limit.
func (b *basis) trial(p *Protocol, size int64, limit time.Duration) time.Duration {
	rate, known := b.rates[p.Name]
	if !known && !b.failed[p.Name] {
		rate = b.slowest
	}
	took := limit
	if rate > 0 {
		took = min(limit, seconds(float64(size)/rate))
	}
	return took + b.between()
}

// between is what a trial takes beside its transfer.
func (b *basis) between() time.Duration {
	return starting + handshakeTrips*b.roundTrip
}

// Propose composes the plan of a comparison: as many iterations as fit into the budget.
func Propose(v *Values, c Comparison) (Proposal, error) {
	if c.Budget < LeastBudget || c.Budget > MostBudget {
		return Proposal{}, fmt.Errorf("a comparison of %s: expected %s to %s", spell(c.Budget), spell(LeastBudget), spell(MostBudget))
	}
	b, err := basisOf(v)
	if err != nil {
		return Proposal{}, err
	}
	c.dropUncarried(&b)
	if len(c.Protocols) < 2 {
		return Proposal{}, errors.New(strings.Join(append([]string{"a comparison takes at least two protocols."}, c.LeftOut...), " "))
	}
	p := Proposal{SizeBytes: b.size()}
	connect, limit := b.limits(p.SizeBytes)
	iteration, longest := time.Duration(0), time.Duration(0)
	for i := range c.Protocols {
		p.Labels = append(p.Labels, c.Protocols[i].Label)
		iteration += b.trial(&c.Protocols[i], p.SizeBytes, limit)
		longest += connect + limit + b.between()
	}
	usable := time.Duration((1-reserve)*float64(c.Budget)) - preparing
	p.decide(iteration, int(usable/iteration))
	if p.Iterations == 0 {
		return Proposal{}, fmt.Errorf("not one iteration fits into %s: one takes about %s. %s", spell(c.Budget), spell(iteration), p.advice())
	}
	p.Estimated = preparing + time.Duration(p.Iterations)*iteration
	p.Name, p.Bound = comparePlan, preparing+time.Duration(p.Iterations)*longest
	p.Text = c.text(&b, &p, iteration, connect, limit)
	p.Sentences = append(p.say(&c, limit), c.LeftOut...)
	return p, nil
}

// dropUncarried leaves out the protocols whose packets the link does not carry.
func (c *Comparison) dropUncarried(b *basis) {
	c.Protocols = slices.DeleteFunc(slices.Clone(c.Protocols), func(p Protocol) bool {
		if b.payload == 0 || p.leastPayload <= b.payload {
			return false
		}
		c.LeftOut = append(c.LeftOut, fmt.Sprintf("Without %s: it needs packets with %d bytes of payload, and the link carries %d at most.", p.Label, p.leastPayload, b.payload))
		return true
	})
}

// decide sets the iterations and what they find: as the conclusion of the run will, in which
// every two of the protocols are a comparison.
func (p *Proposal) decide(iteration time.Duration, iterations int) {
	n := len(p.Labels)
	found := report.NewFinding(n*(n-1)/2, report.AssumedSpread)
	p.Iterations, p.least = max(0, iterations), found.Least()
	p.Smallest = found.Smallest(p.Iterations)
	p.Decides = p.Smallest <= decisive
	if n, ok := found.Needed(decisive); ok {
		p.DecisiveBudget = upTo(time.Duration(float64(preparing+time.Duration(n)*iteration)/(1-reserve)), time.Minute)
		if p.DecisiveBudget > MostBudget {
			p.DecisiveBudget = 0
		}
	}
}
