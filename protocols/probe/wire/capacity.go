package wire

import (
	"encoding/binary"
	"slices"

	"linktrial/protocols/contract"
)

const (
	reportCount = 10
	searchCount = 12
	// MaxStep is the highest number of a step of a search.
	MaxStep = 1<<24 - 1
)

// Ask asks for the [Report] of a step, in a datagram of a size of at least [AskSize]. It is
// sent behind the step's packets: where they waited in a queue, they have left it when the
// answer arrives. number tells answers apart.
func (k *Key) Ask(step uint32, number uint16, size int) []byte {
	b := append(k.head(Ask), byte(step>>16), byte(step>>8), byte(step))
	b = binary.BigEndian.AppendUint16(b, number)
	if pad := size - tagSize - len(b); pad > 0 {
		b = append(b, make([]byte, pad)...)
		Content(b[len(b)-pad:], k.Seed, uint64(number)<<payloadGap)
	}
	return k.closed(b)
}

// AskSize is the size of an [Key.Ask] without padding.
const AskSize = 1 + idSize + 3 + 2 + tagSize

// ParseAsk reads [Key.Ask].
func (k *Key) ParseAsk(b []byte) (step uint32, number uint16, ok bool) {
	if len(b) < AskSize || !k.opened(b, Ask, len(b)) {
		return 0, 0, false
	}
	at := b[1+idSize:]
	return uint32(at[0])<<16 | uint32(at[1])<<8 | uint32(at[2]), binary.BigEndian.Uint16(at[3:]), true
}

// Report is what the receiving end tells of one step of a search. Times are in nanoseconds.
type Report struct {
	Step     uint32
	Number   uint16 // of the [Key.Ask]; 0: nobody asked, the delay has grown too much
	Received int64  // packets
	// Pairs is how many packets arrived right after the one with the number before, PairNS
	// the time between these two, added up.
	Pairs, PairNS int64
	// GrowthNS is by how much the delay grew from the first packet to the last, by the
	// straight line of least squares through all; ErrorNS is its standard error.
	GrowthNS, ErrorNS int64
	SpanNS            int64 // from the first arrival to the last
	Numbers           int64 // by which the numbers of these two differ
	ExcessNS          int64 // the longest delay less the least of the whole probe
}

func (r *Report) fields(step, number *int64) [reportCount]*int64 {
	return [...]*int64{step, number, &r.Received, &r.Pairs, &r.PairNS, &r.GrowthNS, &r.ErrorNS, &r.SpanNS, &r.Numbers, &r.ExcessNS}
}

// Report is the answer to [Key.Ask]: some 50 bytes.
func (k *Key) Report(r Report) []byte {
	step, number := int64(r.Step), int64(r.Number)
	b := k.head(Reported)
	for _, v := range r.fields(&step, &number) {
		b = binary.AppendVarint(b, *v)
	}
	return k.closed(b)
}

// ParseReport reads [Key.Report].
func (k *Key) ParseReport(b []byte) (r Report, ok bool) {
	if len(b) < 1+idSize+tagSize || !k.opened(b, Reported, len(b)) {
		return r, false
	}
	var step, number int64
	fields := r.fields(&step, &number)
	rest, ok := varints(b[1+idSize:len(b)-tagSize], fields[:])
	r.Step, r.Number = uint32(step), uint16(number)
	return r, ok && len(rest) == 0 && step >= 0 && step <= MaxStep && number >= 0 && number < 1<<16
}

// varints reads whole numbers, each in the fewest bytes, and returns what follows.
func varints(b []byte, into []*int64) (rest []byte, ok bool) {
	for _, v := range into {
		x, n := binary.Varint(b)
		if n <= 0 || n > 1 && b[n-1] == 0 {
			return nil, false
		}
		*v, b = x, b[n:]
	}
	return b, true
}

// Search is what the sending end of a search for the capacity has found when it ends.
type Search struct {
	Step                                           int64 // whose packets were sent at the rate that was found
	Sent                                           int64 // packets of it
	HeldNS                                         int64 // from the first of them to the last
	RateBPS, HighBPS, BottleneckBPS                int64
	PacketBytes, Payload, Largest, Steps, SearchNS int64
	End                                            contract.CapacityEnded
}

func (s *Search) fields(end *int64) [searchCount]*int64 {
	return [...]*int64{&s.Step, &s.Sent, &s.HeldNS, &s.RateBPS, &s.HighBPS, &s.BottleneckBPS, &s.PacketBytes, &s.Payload, &s.Largest, &s.Steps, &s.SearchNS, end}
}

// appended appends a search to [Key.End].
func (s *Search) appended(b []byte) []byte {
	end := int64(slices.Index(contract.CapacityEnds, s.End))
	for _, v := range s.fields(&end) {
		b = binary.AppendVarint(b, *v)
	}
	return b
}

// parseSearch reads what follows the other fields of [Key.End].
func parseSearch(b []byte) (*Search, bool) {
	s, end := &Search{}, int64(0)
	fields := s.fields(&end)
	rest, ok := varints(b, fields[:])
	if !ok || len(rest) > 0 || end < 0 || end >= int64(len(contract.CapacityEnds)) {
		return nil, false
	}
	s.End = contract.CapacityEnds[end]
	return s, true
}

// capacityFields are those of [contract.Capacity] in the order in which they are sent.
func capacityFields(c *contract.Capacity, d *contract.Delays, end *int64) []*int64 {
	return []*int64{
		end, &c.MaximumBPS, &c.MeanBPS, &c.PayloadBPS, &c.IntervalNS, &c.Intervals, &c.RateBPS, &c.HighBPS, &c.BottleneckBPS, &c.PacketBytes, &c.PayloadBytes,
		&c.LargestPayloadBytes, &c.HeldNS, &c.HeldSent, &c.HeldReceived, &c.Steps, &c.SearchNS,
		&d.MinNS, &d.MeanNS, &d.P50NS, &d.P95NS, &d.P99NS, &d.MaxNS,
	}
}

func appendCapacity(b []byte, c *contract.Capacity) []byte {
	end := int64(slices.Index(contract.CapacityEnds, c.End))
	for _, v := range capacityFields(c, c.HeldDelay, &end) {
		b = binary.AppendVarint(b, *v)
	}
	return b
}

func parseCapacity(b []byte) (c *contract.Capacity, rest []byte, ok bool) {
	c, end := &contract.Capacity{HeldDelay: &contract.Delays{}}, int64(0)
	rest, ok = varints(b, capacityFields(c, c.HeldDelay, &end))
	if !ok || end < 0 || end >= int64(len(contract.CapacityEnds)) {
		return nil, nil, false
	}
	c.End = contract.CapacityEnds[end]
	return c, rest, true
}
