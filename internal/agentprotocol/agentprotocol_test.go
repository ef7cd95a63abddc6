package agentprotocol

import "testing"

func TestSpan(t *testing.T) {
	for _, c := range []struct {
		here   span
		theirs int32
		spoken bool
		agreed int32
		words  string
	}{
		{span{1, 1}, 0, true, 1, "protocol 1"}, // older: it tells no number
		{span{1, 1}, 1, true, 1, "protocol 1"},
		{span{1, 1}, 2, false, 1, "protocol 1"},
		{span{1, 1}, -5, true, 1, "protocol 1"},
		{span{1, 3}, 0, true, 1, "protocols 1 to 3"}, // an older agent is answered with what it knows
		{span{1, 3}, 2, true, 2, "protocols 1 to 3"},
		{span{1, 3}, 4, false, 3, "protocols 1 to 3"},
		{span{2, 3}, 0, false, 1, "protocols 2 to 3"},
		{span{2, 3}, 1, false, 1, "protocols 2 to 3"},
		{span{2, 2}, 2, true, 2, "protocol 2"},
	} {
		if got := c.here.spoken(c.theirs); got != c.spoken {
			t.Errorf("%v speaks %d: %v", c.here, c.theirs, got)
		}
		if got := c.here.agreed(c.theirs); got != c.agreed {
			t.Errorf("%v agrees with %d on %d, want %d", c.here, c.theirs, got, c.agreed)
		}
		if got := c.here.words(); got != c.words {
			t.Errorf("%v is %q, want %q", c.here, got, c.words)
		}
	}
	if !Spoken(Number) || !Spoken(Oldest) || Spoken(Number+1) || Agreed(Number) != Number {
		t.Error("this version does not go with itself, or with a newer one")
	}
}
