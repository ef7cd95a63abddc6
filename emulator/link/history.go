package link

import (
	"math"
	"time"

	"linktrial/emulator/channel"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// History is the conditions of every direction of a checked network, over the
// first so much time of the realisation of a seed.
func History(n *radio.Network, seed uint64, length time.Duration) ([]radiocontrol.ChannelHistory, error) {
	var out []radiocontrol.ChannelHistory
	for i := range n.Links {
		k := &n.Links[i]
		for _, end := range [2][2]radio.Role{{k.A, k.B}, {k.B, k.A}} {
			exact, err := NewLine(n, k, end[0], end[1], seed)
			if err != nil {
				return nil, err
			}
			h, changes := exact.changes(length)
			if changes {
				if h == nil {
					again, err := NewLine(n, k, end[0], end[1], seed)
					if err != nil {
						return nil, err
					}
					h = again.means(length)
				}
				h.From, h.To = end[0], end[1]
				out = append(out, tidy(*h, exact.own))
			}
		}
	}
	return out, nil
}

// now is the line's state and conditions at a moment, and until when.
func (l *Line) now(at time.Duration) (channel.State, channel.Conditions, time.Duration) {
	s, until := l.Process.State(at)
	c, next := l.Conditions(at)
	return s, c, min(until, next)
}

// changes lists the moments at which something changes; nil where there are
// too many. It returns false where nothing changes.
func (l *Line) changes(length time.Duration) (*radiocontrol.ChannelHistory, bool) {
	h := &radiocontrol.ChannelHistory{}
	var last channel.State
	var lastC channel.Conditions
	steps := 0
	for at := time.Duration(0); at < length; steps++ {
		s, c, until := l.now(at)
		if len(h.AtUS) == 0 || s != last || c != lastC {
			if len(h.AtUS) == radiocontrol.MaxHistory {
				return nil, true
			}
			add(h, at, s, c)
			last, lastC = s, c
		}
		if steps == 100*radiocontrol.MaxHistory {
			return nil, true
		}
		at = until
	}
	return h, len(h.AtUS) > 1
}

func add(h *radiocontrol.ChannelHistory, at time.Duration, s channel.State, c channel.Conditions) {
	h.AtUS = append(h.AtUS, at.Microseconds())
	h.Loss = append(h.Loss, rounded(s.Loss))
	h.BitErrorRate = append(h.BitErrorRate, rounded(s.BitErrorRate))
	h.RateBitsPerSecond = append(h.RateBitsPerSecond, rounded(c.Rate))
	h.DelayUS = append(h.DelayUS, c.Delay.Microseconds())
}

// rounded keeps four significant digits: a plot shows no more.
func rounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// changesInStep bounds the work for one step's mean. A step with more changes
// counts for its beginning.
const changesInStep = 1000

// means is the mean conditions over even steps.
func (l *Line) means(length time.Duration) *radiocontrol.ChannelHistory {
	step := (length + radiocontrol.MaxHistory - 1) / radiocontrol.MaxHistory
	h := &radiocontrol.ChannelHistory{Step: step}
	for begin := time.Duration(0); begin < length; begin += step {
		end := min(begin+step, length)
		var sum channel.State
		var rate, delay float64
		at := begin
		for n := 0; at < end && n < changesInStep; n++ {
			s, c, until := l.now(at)
			until = min(until, end)
			w := float64(until - at)
			sum.Loss += w * s.Loss
			sum.BitErrorRate += w * s.BitErrorRate
			rate += w * c.Rate
			delay += w * float64(c.Delay)
			at = until
		}
		w := float64(at - begin)
		add(h, begin, channel.State{Loss: sum.Loss / w, BitErrorRate: sum.BitErrorRate / w}, channel.Conditions{Rate: rate / w, Delay: time.Duration(delay / w)})
	}
	return h
}

// tidy leaves out what is nothing special throughout.
func tidy(h radiocontrol.ChannelHistory, own channel.Conditions) radiocontrol.ChannelHistory {
	h.Loss = unless(h.Loss, 0)
	h.BitErrorRate = unless(h.BitErrorRate, 0)
	h.RateBitsPerSecond = unless(h.RateBitsPerSecond, rounded(own.Rate))
	h.DelayUS = unless(h.DelayUS, own.Delay.Microseconds())
	return h
}

func unless[T comparable](list []T, all T) []T {
	for _, x := range list {
		if x != all {
			return list
		}
	}
	return nil
}

// Radios is what each radio could tell of itself now.
func (l *Network) Radios() []radiocontrol.RadioStatus {
	var out []radiocontrol.RadioStatus
	for i := range l.directions {
		d := &l.directions[i]
		c, _ := d.line.Conditions(l.now)
		s, _ := d.line.Process.Clone().State(max(l.now, d.start))
		loss := s.Loss
		if s.BitErrorRate > 0 {
			loss = 1 - (1-loss)*math.Pow(1-s.BitErrorRate, d.line.bits)
		}
		waiting := d.waiting.n
		if d.frames > 0 && d.arq == nil {
			waiting-- // it is being sent
		}
		out = append(out, radiocontrol.RadioStatus{
			From: d.hop.From, To: d.hop.To, QueuePackets: waiting, QueueBytes: d.waitingBytes,
			RateBitsPerSecond: c.Rate, Delay: c.Delay, Loss: loss, SNR: snr(loss, d.line.bits),
		})
	}
	return out
}

// snr is the signal-to-noise ratio per bit in dB at which uncoded BPSK in
// white noise loses that share of so many bits: the bit error rate is
// erfc(√SNR)/2 (Proakis, Digital Communications, section 4.3).
func snr(loss, bits float64) float64 {
	const least, most = -10, 30
	ber := -math.Expm1(math.Log1p(-loss) / bits)
	x := math.Erfcinv(2 * ber)
	if !(x > 0) { // as many wrong bits as right ones, or more
		return least
	}
	return min(most, max(least, 20*math.Log10(x)))
}
