package contract

import "fmt"

// MaxMessageSizes is of how many sizes the messages of a probe may be.
const MaxMessageSizes = 8

// MessagesOfSize is what became of a probe's messages of one size. A message is one or more
// packets that are sent at once; none is sent again. It is delivered where all have arrived.
type MessagesOfSize struct {
	Bytes     int64 `json:"bytes"`     // payload of all packets of one message
	Packets   int64 `json:"packets"`   // of one message
	Sent      int64 `json:"sent"`      // messages of which all packets were sent
	Delivered int64 `json:"delivered"` // of those
	// Time is from just before a message's first packet was sent until the last one arrived,
	// by the clocks of the two nodes as delays are; absent where none was delivered.
	Time *Delays `json:"time,omitempty"`
}

// checkMessages refuses messages that cannot be: of more packets than there were, or faster
// than each of their packets.
func (p *ProbeMetrics) checkMessages() error {
	if len(p.Messages) == 0 {
		return nil
	}
	if len(p.Messages) > MaxMessageSizes {
		return fmt.Errorf("probe with messages of %d sizes, expected at most %d", len(p.Messages), MaxMessageSizes)
	}
	var sent, sentBytes, received, receivedBytes, missing, before int64
	for i := range p.Messages {
		m := &p.Messages[i]
		if err := m.check(p); err != nil {
			return err
		}
		if m.Bytes <= before {
			return fmt.Errorf("probe with messages of %d bytes after those of %d, expected the smallest first", m.Bytes, before)
		}
		before = m.Bytes
		sent, sentBytes = sent+m.Sent*m.Packets, sentBytes+m.Sent*m.Bytes
		received, receivedBytes = received+m.Delivered*m.Packets, receivedBytes+m.Delivered*m.Bytes
		missing += m.Sent - m.Delivered
	}
	switch {
	case sent > p.Sent || sentBytes > p.SentBytes:
		return fmt.Errorf("probe with messages of %d packets and %d bytes sent, of %d and %d in all", sent, sentBytes, p.Sent, p.SentBytes)
	case received > p.Received || receivedBytes > p.ReceivedBytes:
		return fmt.Errorf("probe with messages of %d packets and %d bytes delivered, of %d and %d that arrived", received, receivedBytes, p.Received, p.ReceivedBytes)
	case missing > p.Lost:
		return fmt.Errorf("probe with %d messages not delivered and %d packets lost", missing, p.Lost)
	}
	return nil
}

// mostMessages bounds counts and sizes, so that products of two are whole numbers.
const mostMessages = 1 << 31

func (m *MessagesOfSize) check(p *ProbeMetrics) error {
	for _, v := range []struct {
		name        string
		value, from int64
		to          int64
	}{
		{"bytes", m.Bytes, 1, mostMessages}, {"packets", m.Packets, 1, m.Bytes}, {"sent", m.Sent, 0, mostMessages}, {"delivered", m.Delivered, 0, m.Sent},
	} {
		if v.value < v.from || v.value > v.to {
			return fmt.Errorf("probe with messages of %d bytes: %s %d, expected %d to %d", m.Bytes, v.name, v.value, v.from, v.to)
		}
	}
	if (m.Time == nil) != (m.Delivered == 0) {
		return fmt.Errorf("probe with messages of %d bytes: %d delivered, expected times exactly where some were", m.Bytes, m.Delivered)
	}
	if m.Time == nil {
		return nil
	}
	// The last packet to arrive is no earlier than the first that was sent.
	if p.Delay != nil && m.Time.MinNS < p.Delay.MinNS {
		return fmt.Errorf("probe with messages of %d bytes: delivered in %d ns, its packets took at least %d ns", m.Bytes, m.Time.MinNS, p.Delay.MinNS)
	}
	return m.Time.check()
}
