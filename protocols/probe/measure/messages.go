package measure

import "linktrial/protocols/contract"

// openMessages is how many messages may have begun after one that is not complete: it then
// counts as not delivered. Packets that a queue keeps in order are never that late.
const openMessages = 1 << 12

// Messages measures the messages of a probe, of which some packets have arrived.
type Messages struct {
	open []openMessage    // by the message's number, as far as there is room
	took map[int64]*times // by the message's size
}

type openMessage struct {
	number        int64 // and one more: 0 is none
	packets       int   // that have arrived
	sent, arrived int64 // the earliest and the latest of these packets
}

// Arrive takes the first arrival of a packet of a message, by its number from 0 on, its size
// in bytes and how many packets it has.
func (m *Messages) Arrive(number, bytes int64, packets int, sent, arrived int64) {
	if m.open == nil {
		m.open, m.took = make([]openMessage, openMessages), map[int64]*times{}
	}
	o := &m.open[number%openMessages]
	switch {
	case o.number > number+1:
		return // its place is that of a later one
	case o.number <= number:
		*o = openMessage{number + 1, 0, sent, arrived}
	}
	o.packets++
	o.sent, o.arrived = min(o.sent, sent), max(o.arrived, arrived)
	if o.packets < packets {
		return
	}
	if m.took[bytes] == nil {
		m.took[bytes] = &times{}
	}
	m.took[bytes].add(o.arrived - o.sent)
}

// Result adds to the messages sent of each size how many were delivered, and their times.
func (m *Messages) Result(sent []contract.MessagesOfSize) []contract.MessagesOfSize {
	for i := range sent {
		if t := m.took[sent[i].Bytes]; t != nil {
			sent[i].Delivered, sent[i].Time = t.count, t.distribution(false)
		}
	}
	return sent
}
