package measure

import (
	"testing"

	"linktrial/protocols/contract"
)

// TestMessages: a message is delivered where all its packets arrive, in any order, and takes
// from the first one's sending to the last one's arrival.
func TestMessages(t *testing.T) {
	m := &Messages{}
	m.Arrive(0, 20, 1, 0, 30*ms)
	m.Arrive(1, 2000, 2, 101*ms, 150*ms) // the second packet is the first to arrive
	m.Arrive(2, 20, 1, 200*ms, 250*ms)
	m.Arrive(1, 2000, 2, 100*ms, 260*ms)
	m.Arrive(3, 2000, 2, 300*ms, 340*ms) // half of it
	got := m.Result([]contract.MessagesOfSize{{Bytes: 20, Packets: 1, Sent: 3}, {Bytes: 2000, Packets: 2, Sent: 2}, {Bytes: 3000, Packets: 3, Sent: 1}})
	if d := got[0]; d.Delivered != 2 || d.Sent != 3 || d.Time.MinNS != 30*ms || d.Time.P50NS != 30*ms || d.Time.P95NS != 50*ms || d.Time.MeanNS != 40*ms || d.Time.PercentilesNS != nil {
		t.Errorf("%+v, %+v", d, d.Time)
	}
	if d := got[1]; d.Delivered != 1 || d.Time.MinNS != 160*ms || d.Time.MaxNS != 160*ms {
		t.Errorf("%+v, %+v", d, d.Time)
	}
	if d := got[2]; d.Delivered != 0 || d.Time != nil {
		t.Errorf("%+v", d)
	}
}

// TestMessagesForgotten: an incomplete message makes room for later ones.
func TestMessagesForgotten(t *testing.T) {
	m := &Messages{}
	m.Arrive(0, 2000, 2, 0, 1)
	m.Arrive(1, 2000, 2, 0, 1)
	m.Arrive(openMessages, 20, 1, 0, 1)
	m.Arrive(0, 2000, 2, 0, 2)
	m.Arrive(1, 2000, 2, 0, 2)
	got := m.Result([]contract.MessagesOfSize{{Bytes: 20, Sent: 1}, {Bytes: 2000, Sent: 2}})
	if got[0].Delivered != 1 || got[1].Delivered != 1 {
		t.Errorf("%+v", got)
	}
}
