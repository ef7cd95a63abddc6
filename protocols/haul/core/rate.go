package core

import "time"

// Link is what a sender knows of the radio beforehand; what is zero it does not know.
type Link struct {
	Rate float64       // bytes of IP packets per second
	RTT  time.Duration // without queueing
	MTU  int           // bytes of IP packet
	Loss float64       // share of packets, 0 to 1
}

// Constants of the control of the rate. They were chosen on channels of the
// simulator and of the virtual lab.
const (
	initialBurst   = 10               // packets before anything is known (RFC 6928)
	targetPackets  = 3                // standing queue to keep, in packets ...
	targetShare    = 0.08             // ... or in round trips, whichever is longer
	maxGain        = 1.25             // of the pacing over the estimated rate, with an empty queue
	minGain        = 0.5              // with a queue far beyond the target
	startupGain    = 2.0              // growth in a round trip until the rate is found
	reduceBy       = 0.85             // on a mark of congestion, or a queue that does not shrink
	baseWindow     = 30 * time.Second // how long the least delay counts
	patienceRounds = 6                // round trips with a long queue before it counts as another flow's
	headers        = 28               // bytes of IPv4 and UDP, which the link carries as well
)

// point is what one acknowledgement said of the path.
type point struct {
	number uint64        // largest packet
	sent   time.Duration // when it was sent
	bytes  uint64        // sent up to it
	got    uint64        // packets received up to it
	at     time.Duration // when it arrived, by the receiver's clock
}

// rate estimates round trip, queue and rate of the path, and says how fast to
// send. Random loss does not slow it down: what counts is how long the link
// needs for all that was sent, lost or not, which the times of arrival tell.
type rate struct {
	bandwidth float64 // bytes/s of IP packets; 0: nothing known
	startup   bool

	srtt, rttvar, minRTT time.Duration

	points   []point
	clock    time.Duration // receiver's clock, unwrapped
	wrapped  uint32
	clocked  bool
	base     [2]time.Duration // least one-way delay of this window and the last
	baseAt   time.Duration
	queues   []queued // of the last round trip
	standing time.Duration
	accepted time.Duration // queue of others that we cannot shrink
	longFor  time.Duration // since when the queue has been long; 0: is not
	reduced  time.Duration // last reduction
	ce       uint64
	size     float64 // bytes of a usual packet
}

type queued struct {
	at    time.Duration
	delay time.Duration
}

func (r *rate) init(l Link, packet int) {
	r.size = float64(packet + headers)
	r.bandwidth = l.Rate
	r.startup = l.Rate == 0
	if l.RTT > 0 {
		r.minRTT, r.srtt, r.rttvar = l.RTT, l.RTT, l.RTT/8
	}
}

// roundTrip takes in a measured round trip.
func (r *rate) roundTrip(d time.Duration) {
	if d <= 0 {
		d = time.Microsecond
	}
	if r.srtt == 0 {
		r.srtt, r.rttvar, r.minRTT = d, d/2, d
		return
	}
	diff := max(r.srtt-d, d-r.srtt)
	r.rttvar += (diff - r.rttvar) / 4
	r.srtt += (d - r.srtt) / 8
	r.minRTT = min(r.minRTT, d)
}

// packetTime is how long the link needs for a usual packet; 0 where nothing is known.
func (r *rate) packetTime() time.Duration {
	if r.bandwidth == 0 {
		return 0
	}
	return seconds(r.size / r.bandwidth)
}

func seconds(s float64) time.Duration {
	const most = 1 << 61
	if ns := s * 1e9; ns < most {
		return time.Duration(ns)
	}
	return most
}

// target is the standing queue that keeps the link busy between two acknowledgements.
func (r *rate) target() time.Duration {
	return max(targetPackets*r.packetTime(), time.Duration(targetShare*float64(r.minRTT)), time.Millisecond)
}

// arrived takes in the newest packet of an acknowledgement.
func (r *rate) arrived(now time.Duration, at uint32, p point, ce uint64) {
	if !r.clocked {
		r.clocked, r.wrapped = true, at
	}
	step := time.Duration(int32(at-r.wrapped)) * time.Microsecond
	r.clock += step
	r.wrapped = at
	p.at = r.clock
	if n := len(r.points); n > 0 {
		last := r.points[n-1]
		// A clock that runs back or leaps (a node that slept): begin anew.
		if p.at < last.at || (p.at-last.at)-(now-last.sent) > 10*time.Second {
			r.points, r.queues = r.points[:0], r.queues[:0]
			r.base = [2]time.Duration{}
			r.baseAt = 0
		}
	}
	r.queueing(now, p)
	r.points = append(r.points, p)
	if len(r.points) > 512 {
		r.points = append(r.points[:0], r.points[256:]...)
	}
	r.estimate(now, p, ce > r.ce)
	r.ce = max(r.ce, ce)
}

// queueing measures how much longer than the least delay of the path the packet took.
func (r *rate) queueing(now time.Duration, p point) {
	delay := p.at - p.sent // of two clocks: only differences mean anything
	switch {
	case r.baseAt == 0:
		r.base, r.baseAt = [2]time.Duration{delay, delay}, now
	case now-r.baseAt > baseWindow:
		r.base, r.baseAt = [2]time.Duration{delay, r.base[0]}, now
	default:
		r.base[0] = min(r.base[0], delay)
	}
	q := delay - min(r.base[0], r.base[1])
	for len(r.queues) > 1 && now-r.queues[0].at > r.srtt {
		r.queues = r.queues[1:]
	}
	r.queues = append(r.queues, queued{now, q})
	r.standing = q
	for _, o := range r.queues {
		r.standing = min(r.standing, o.delay)
	}
}

// sample finds the rate of service up to p: over half a round trip and some
// packets at least. sending is the rate at which the same packets were sent.
// paced says that they did not go out at once, so that the two can be compared.
func (r *rate) sample(p point) (service, sending, delivered float64, paced, ok bool) {
	span := max(r.minRTT/2, 2*time.Millisecond)
	enough := uint64(4 * r.size)
	if r.startup {
		span, enough = time.Millisecond/4, uint64(3*r.size)
	}
	for i := len(r.points) - 2; i >= 0; i-- {
		o := r.points[i]
		took := p.at - o.at
		if took < span || p.bytes-o.bytes < enough {
			continue
		}
		bytes := float64(p.bytes - o.bytes)
		service = bytes / took.Seconds()
		sending = bytes / max((p.sent-o.sent).Seconds(), 1e-6)
		delivered = service * float64(p.got-o.got) / float64(p.number-o.number)
		return service, sending, delivered, p.sent-o.sent > r.minRTT/4, true
	}
	return 0, 0, 0, false, false
}

// throughput is what went out in the last round trip. In the beginning the rate
// is at most a multiple of it: a few packets in a row may have passed a shared
// medium faster than many will.
func (r *rate) throughput(p point) float64 {
	from := point{}
	for i := len(r.points) - 2; i >= 0; i-- {
		if from = r.points[i]; p.sent-from.sent >= r.minRTT {
			break
		}
		from = point{}
	}
	span := r.minRTT
	if from.bytes > 0 {
		span = p.sent - from.sent
	}
	return float64(p.bytes-from.bytes) / max(span.Seconds(), 1e-6)
}

func (r *rate) estimate(now time.Duration, p point, marked bool) {
	service, sending, delivered, paced, ok := r.sample(p)
	if !ok {
		return
	}
	long := r.standing > r.accepted+2*r.target()
	switch {
	case r.startup:
		most := startupGain * r.throughput(p)
		r.bandwidth = max(r.bandwidth, min(service, most))
		// Found: the queue grows, or twice what goes out would be more than the link carries.
		if paced && (service < 0.85*sending && r.standing > r.target()/2 || service < 0.9*most) || r.standing > r.target() {
			r.startup, r.bandwidth = false, min(service, most)
		}
	case r.standing > r.packetTime():
		// The queue was never empty, so this is what the link carries.
		r.bandwidth += (service - r.bandwidth) / 2
		if long && service > 0.98*sending && now-r.reduced > r.srtt {
			// Or what is too much for the queue, which drops the rest.
			r.reduced = now
			r.bandwidth = max(reduceBy*r.bandwidth, delivered)
		}
	default:
		r.bandwidth = max(r.bandwidth, service)
	}
	if marked && now-r.reduced > r.srtt {
		r.reduced, r.startup = now, false
		r.bandwidth *= reduceBy
	}
	r.others(now, long)
}

// others finds out whether a long queue is another flow's, which no patience of
// ours will shorten: then it is left to stand, and ours begins behind it.
func (r *rate) others(now time.Duration, long bool) {
	switch {
	case !long:
		r.longFor = 0
		if r.standing < r.target() {
			r.accepted = 0
		}
	case r.longFor == 0:
		r.longFor = now
	case now-r.longFor > patienceRounds*max(r.srtt, 20*time.Millisecond):
		r.accepted, r.longFor = r.standing, 0
	}
}

// pacing returns the rate to send at, in bytes/s of IP packets; 0: no bound known.
func (r *rate) pacing() float64 {
	switch {
	case r.bandwidth == 0 && r.srtt == 0:
		return 0
	case r.bandwidth == 0:
		return startupGain * initialBurst * r.size / r.srtt.Seconds()
	case r.startup:
		return r.bandwidth
	}
	// The queue comes to its target within two round trips, which what is known
	// of it a round trip late does not make oscillate.
	round := max(r.minRTT+r.target(), time.Microsecond)
	gain := 1 + (r.target()-(r.standing-r.accepted)).Seconds()/(2*round.Seconds())
	return r.bandwidth * min(max(gain, minGain), maxGain)
}

// window is how many bytes of IP packets may be under way: a bound for what
// acknowledgements that are lost or late leave unknown.
func (r *rate) window() float64 {
	if r.bandwidth == 0 {
		return 2 * initialBurst * r.size
	}
	gain := 2.0
	if r.startup {
		gain = 3
	}
	return gain*r.bandwidth*(max(r.srtt, r.minRTT)+r.target()).Seconds() + 2*initialBurst*r.size
}

// timeout is how long after the last packet an acknowledgement is overdue.
func (r *rate) timeout() time.Duration {
	if r.srtt == 0 {
		return 300 * time.Millisecond
	}
	return r.srtt + max(2*r.rttvar, r.srtt/16, time.Millisecond) + r.packetTime()
}
