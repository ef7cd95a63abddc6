package wire

import (
	"encoding/binary"

	"linktrial/protocols/contract"
)

// messageFields are those of [contract.MessagesOfSize] in the order in which they are sent.
func messageFields(m *contract.MessagesOfSize) []*int64 {
	return []*int64{&m.Bytes, &m.Packets, &m.Sent, &m.Delivered}
}

func timeFields(d *contract.Delays) []*int64 {
	return []*int64{&d.MinNS, &d.MeanNS, &d.P50NS, &d.P95NS, &d.P99NS, &d.MaxNS}
}

// appendMessages appends how many sizes there are, and the values of each: its times where
// one was delivered.
func appendMessages(b []byte, all []contract.MessagesOfSize) []byte {
	b = binary.AppendVarint(b, int64(len(all)))
	for i := range all {
		values := messageFields(&all[i])
		if t := all[i].Time; t != nil {
			values = append(values, timeFields(t)...)
		}
		for _, v := range values {
			b = binary.AppendVarint(b, *v)
		}
	}
	return b
}

func parseMessages(b []byte) (all []contract.MessagesOfSize, rest []byte, ok bool) {
	count := int64(0)
	if rest, ok = varints(b, []*int64{&count}); !ok || count < 1 || count > contract.MaxMessageSizes {
		return nil, nil, false
	}
	all = make([]contract.MessagesOfSize, count)
	for i := range all {
		m := &all[i]
		if rest, ok = varints(rest, messageFields(m)); !ok {
			return nil, nil, false
		}
		if m.Delivered == 0 {
			continue
		}
		m.Time = &contract.Delays{}
		if rest, ok = varints(rest, timeFields(m.Time)); !ok {
			return nil, nil, false
		}
	}
	return all, rest, true
}
