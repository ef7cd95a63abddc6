// Package pattern says which packets a probe sends, and when: at a constant rate,
// as speech over IP or a recorded trace has them, or in messages; and over which transport. Comes in: a probe's options
// and a seed. Goes out: one packet after the other. Pure.
package pattern

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bounds of what a probe sends.
const (
	// MinBytes is the smallest packet: what identifies it has to fit.
	MinBytes = 24
	MaxBytes = 8972    // an IPv4 packet of 9000 bytes
	MaxRate  = 1000    // packets a second
	MaxTrace = 100_000 // packets of a trace

	shortest = time.Second / MaxRate
)

// Names of transports, as plans write them.
const (
	UDP  = "udp"
	DCCP = "dccp"

	DefaultCCID = 2 // congestion control of DCCP (RFC 4341)
)

// Names of patterns, as plans write them.
const (
	Constant = "constant"
	G711     = "voip-g711"
	G729     = "voip-g729"
	Trace    = "trace"
	Capacity = "capacity" // a search, whose packets are not known beforehand
	Messages = "messages"
)

// Speech: a packet every 20 ms while somebody talks (RFC 3551, section 4.2), with the
// 12 bytes of an RTP header (RFC 3550, section 5.1).
const (
	voiceInterval = 20 * time.Millisecond
	rtpHeader     = 12
	g711Bytes     = 160 // 64 kbit/s
	g729Bytes     = 20  // 8 kbit/s
)

// Packet is one packet of a pattern.
type Packet struct {
	At    time.Duration // after the probe's start
	Bytes int           // of payload of the datagram
}

// Spec is what a probe's options say.
type Spec struct {
	Pattern string
	Rate    float64 // of constant, packets a second
	Bytes   int     // of constant
	// Talk and Pause are the means of exponentially drawn talk spurts and pauses of
	// speech; a Pause of 0 is speech without an end.
	Talk, Pause time.Duration
	Trace       []Packet
	// Period is the time after which a trace begins anew.
	Period time.Duration
	// Highest is the rate of IP packets that a search for the capacity does not exceed, in
	// bit/s; Hold is how long it sends at the rate that it has found.
	Highest float64
	Hold    time.Duration
	// Messages are the sizes of messages in bytes of payload, in turn; MessagePacket is the
	// most of one packet, and MessageRate the mean rate with headers that the pauses are
	// made for, in bit/s.
	Messages      []int
	MessagePacket int
	MessageRate   float64
}

// Read takes a spec from the options of a driver's parameters, defaults filled in.
func Read(options map[string]any) (*Spec, error) {
	s := &Spec{Pattern: Constant, Rate: 10, Bytes: 100, Highest: 200e6, Hold: 5 * time.Second}
	if v, ok := options["pattern"].(string); ok {
		s.Pattern = v
	}
	if t := options["transport"]; options["ccid"] != nil && (t == nil || t == UDP) {
		return nil, fmt.Errorf("option ccid is of the transport %s; give transport: %s, or leave ccid out", DCCP, DCCP)
	}
	if v, ok := number(options["packets_per_second"]); ok {
		s.Rate = v
	}
	if v, ok := number(options["packet"]); ok {
		s.Bytes = int(v)
	}
	if v, ok := number(options["talk"]); ok {
		s.Talk = time.Duration(v * float64(time.Millisecond))
	}
	if v, ok := number(options["pause"]); ok {
		s.Pause = time.Duration(v * float64(time.Millisecond))
	}
	if v, ok := number(options["highest_kbit_per_second"]); ok {
		s.Highest = v * 1e3
	}
	if v, ok := number(options["hold"]); ok {
		s.Hold = time.Duration(v * float64(time.Millisecond))
	}
	if t, ok := options["transport"].(string); ok && (s.Pattern == Capacity || s.Pattern == Messages) && t != UDP {
		return nil, fmt.Errorf("the pattern %s needs the transport %s, found %s: a congestion control would hold packets back", s.Pattern, UDP, t)
	}
	if s.Pattern == Messages {
		if err := s.readMessages(options); err != nil {
			return nil, err
		}
	}
	text, has := options["trace"].(string)
	if has != (s.Pattern == Trace) {
		if has {
			return nil, fmt.Errorf("option trace is of the pattern %s, found the pattern %s", Trace, s.Pattern)
		}
		return nil, fmt.Errorf("the pattern %s needs the option trace: lines of seconds and bytes", Trace)
	}
	if has {
		var err error
		if s.Trace, s.Period, err = parseTrace(text); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case int64:
		return float64(x), true
	}
	return 0, false
}

// parseTrace reads lines of seconds and bytes, in the order of time. The trace
// begins anew as long after its last packet as that one came after the one before.
func parseTrace(text string) (out []Packet, period time.Duration, err error) {
	fail := func(line int, format string, args ...any) ([]Packet, time.Duration, error) {
		return nil, 0, fmt.Errorf("option trace, line %d: "+format, append([]any{line}, args...)...)
	}
	for i, line := range strings.Split(text, "\n") {
		fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == '\r' })
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return fail(i+1, "expected seconds and bytes, found %.60q", line)
		}
		seconds, err := strconv.ParseFloat(fields[0], 64)
		if err != nil || math.IsNaN(seconds) || seconds < 0 || seconds > 7*24*3600 {
			return fail(i+1, "expected 0 to 604800 seconds, found %.60q", fields[0])
		}
		bytes, err := strconv.Atoi(fields[1])
		if err != nil || bytes < MinBytes || bytes > MaxBytes {
			return fail(i+1, "expected %d to %d bytes, found %.60q", MinBytes, MaxBytes, fields[1])
		}
		at := time.Duration(math.Round(seconds * 1e9))
		if n := len(out); n > 0 && at < out[n-1].At {
			return fail(i+1, "expected a time of at least the line before, found %.60q", fields[0])
		}
		if len(out) == MaxTrace {
			return fail(i+1, "expected at most %d packets", MaxTrace)
		}
		out = append(out, Packet{at, bytes})
	}
	n := len(out)
	if n < 2 {
		return nil, 0, fmt.Errorf("option trace: expected at least two lines of seconds and bytes, found %d", n)
	}
	period = 2*out[n-1].At - out[n-2].At - out[0].At
	if period < time.Duration(n)*shortest {
		return nil, 0, fmt.Errorf("option trace: %d packets in %s, at most %d a second can be sent", n, period, MaxRate)
	}
	first := out[0].At
	for i := range out {
		out[i].At -= first
	}
	return out, period, nil
}

// BitsPerSecond is the mean rate of the pattern's payload.
func (s *Spec) BitsPerSecond() float64 {
	voice := func(bytes int) float64 {
		share := 1.0
		if s.Pause > 0 {
			share = s.Talk.Seconds() / (s.Talk + s.Pause).Seconds()
		}
		return float64(8*(bytes+rtpHeader)) / voiceInterval.Seconds() * share
	}
	switch s.Pattern {
	case G711:
		return voice(g711Bytes)
	case G729:
		return voice(g729Bytes)
	case Trace:
		sum := 0
		for _, p := range s.Trace {
			sum += p.Bytes
		}
		return float64(8*sum) / s.Period.Seconds()
	case Messages:
		return s.messageBits()
	}
	return 8 * float64(s.Bytes) * s.Rate
}

// Source yields a pattern's packets, one after the other, without an end.
type Source struct {
	spec  *Spec
	seed  uint64
	drawn uint64
	n     int           // packets so far
	at    time.Duration // of speech and messages: of the next packet
	until time.Duration // of speech: the end of the talk spurt
	part  int           // of a message: packets of it so far
}

// Source begins the pattern. The same seed makes the same packets.
func (s *Spec) Source(seed uint64) *Source {
	src := &Source{spec: s, seed: seed}
	src.until = src.exponential(s.Talk)
	return src
}

// Next is the next packet.
func (s *Source) Next() Packet {
	n := s.n
	s.n++
	switch s.spec.Pattern {
	case G711:
		return s.voice(g711Bytes)
	case G729:
		return s.voice(g729Bytes)
	case Messages:
		return s.message(n)
	case Trace:
		p := s.spec.Trace[n%len(s.spec.Trace)]
		p.At += time.Duration(n/len(s.spec.Trace)) * s.spec.Period
		return p
	}
	return Packet{time.Duration(float64(n) / s.spec.Rate * 1e9), s.spec.Bytes}
}

func (s *Source) voice(bytes int) Packet {
	for s.spec.Pause > 0 && s.at >= s.until {
		s.at = max(s.at, s.until+s.exponential(s.spec.Pause))
		s.until = s.at + s.exponential(s.spec.Talk)
	}
	p := Packet{s.at, bytes + rtpHeader}
	s.at += voiceInterval
	return p
}

// exponential draws a time with this mean, to the millisecond, so that it is the
// same on every machine; at least one.
func (s *Source) exponential(mean time.Duration) time.Duration {
	return max(time.Millisecond, time.Duration(-math.Log(s.uniform())*float64(mean)).Round(time.Millisecond))
}

// uniform draws a number between 0 and 1.
func (s *Source) uniform() float64 {
	s.drawn++
	z := s.seed + s.drawn*0x9E3779B97F4A7C15 // SplitMix64, as payloads are made
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	return (float64(z>>11) + 0.5) / (1 << 53)
}
