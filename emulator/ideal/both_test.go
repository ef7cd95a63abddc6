package ideal

import (
	"testing"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// TestOfBoth: two radios of the same rate need about half of the time for the payload,
// no division of the flow is shorter, and a radio that is never up changes nothing.
func TestOfBoth(t *testing.T) {
	both := func(n *radio.Network, bytes int64) Times {
		t.Helper()
		d, err := OfBoth(n, [2]uint64{1, 2}, flow(bytes), radiocontrol.IdealHorizon, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	one := pair(radio.MediumFullDuplex)
	if got, want := both(one, 1000), times(t, one, 1, 1000); got != want {
		t.Errorf("over one radio %+v, expected %+v", got, want)
	}
	n := pair(radio.MediumFullDuplex)
	n.Second = pair(radio.MediumFullDuplex)
	// 1000 bytes fill ten packets of 128 ms: five each, then 50 ms there, 29 ms and 50 ms back.
	if got, want := both(n, 1000), 5*128*ms+129*ms; got.Ideal != want || got.Coded != want {
		t.Errorf("over both %+v, expected %s", got, want)
	}
	slow := pair(radio.MediumFullDuplex)
	n.Second = slow
	slow.Links[0].RateBitsPerSecond = 2000
	n.Second.Links[0].Delay = 400 * ms
	shortest := time.Duration(0)
	for at := int64(0); at <= 1000; at += 10 {
		first, second := time.Duration(0), time.Duration(0)
		if at > 0 {
			first = compute(t, n, 1, at)
		}
		if at < 1000 {
			second = compute(t, n.Second, 2, 1000-at)
		}
		if d := max(first, second); shortest == 0 || d < shortest {
			shortest = d
		}
	}
	if got := both(n, 1000).Ideal; got < shortest-10*ms || got > shortest+128*ms {
		t.Errorf("over a fast and a slow one %s, the best of all divisions takes %s", got, shortest)
	}
	slow.Links[0].Channel = radio.Channel{Model: radio.ChannelUniform, Loss: 1}
	if got, want := both(n, 1000), times(t, one, 1, 1000); got != want {
		t.Errorf("with a dead second radio %+v, expected %+v", got, want)
	}
}
