package pattern

import (
	"math"
	"strings"
	"testing"
	"time"
)

func take(s *Spec, seed uint64, until time.Duration) (out []Packet) {
	src := s.Source(seed)
	for p := src.Next(); p.At < until; p = src.Next() {
		out = append(out, p)
	}
	return out
}

func TestConstant(t *testing.T) {
	s, err := Read(map[string]any{"pattern": Constant, "packets_per_second": 50.0, "packet": int64(200)})
	if err != nil {
		t.Fatal(err)
	}
	got := take(s, 1, 2*time.Second)
	if len(got) != 100 || got[99] != (Packet{1980 * time.Millisecond, 200}) {
		t.Errorf("%d packets, the last %+v", len(got), got[len(got)-1])
	}
	if s.BitsPerSecond() != 80_000 {
		t.Errorf("%f bit/s", s.BitsPerSecond())
	}
}

// TestSpeech: in an hour the share of the time with packets is that of ITU-T P.59.
func TestSpeech(t *testing.T) {
	s, err := Read(map[string]any{"pattern": G729, "talk": 1004.0, "pause": 1587.0})
	if err != nil {
		t.Fatal(err)
	}
	got := take(s, 3, time.Hour)
	share := float64(len(got)) * voiceInterval.Seconds() / 3600
	// A spurt's last packet may stand for less than 20 ms: half of one for each.
	if want := 1.004 / 2.591; math.Abs(share-want) > 0.03 {
		t.Errorf("packets for %.3f of the time, expected %.3f", share, want)
	}
	for i, p := range got {
		if p.Bytes != 32 || i > 0 && p.At-got[i-1].At < voiceInterval {
			t.Fatalf("packet %d: %+v after %+v", i, p, got[i-1])
		}
	}
	again, other := take(s, 3, time.Hour), take(s, 4, time.Hour)
	if len(again) != len(got) || again[500] != got[500] || other[500] == got[500] {
		t.Error("the seed does not decide the packets")
	}
	s.Pause = 0
	if n := len(take(s, 1, 10*time.Second)); n != 500 {
		t.Errorf("speech without an end: %d packets in 10 s", n)
	}
}

func TestTrace(t *testing.T) {
	s, err := Read(map[string]any{"pattern": Trace, "trace": "# a recording\n1.5 100\n1.52, 200\n\n2.0\t300\n"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Packet{{0, 100}, {20 * time.Millisecond, 200}, {500 * time.Millisecond, 300}, {980 * time.Millisecond, 100}, {time.Second, 200}}
	got := take(s, 1, 1100*time.Millisecond)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("packet %d: %+v, expected %+v", i, got[i], want[i])
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		options map[string]any
		want    string
	}{
		"no trace":          {map[string]any{"pattern": Trace}, "needs the option trace"},
		"trace of another":  {map[string]any{"pattern": G711, "trace": "0 100\n1 100"}, "found the pattern voip-g711"},
		"one line":          {map[string]any{"pattern": Trace, "trace": "0 100"}, "at least two lines"},
		"three columns":     {map[string]any{"pattern": Trace, "trace": "0 100\n1 2 3"}, "line 2: expected seconds and bytes"},
		"no number":         {map[string]any{"pattern": Trace, "trace": "x 100\n1 100"}, "line 1: expected 0 to"},
		"not a number":      {map[string]any{"pattern": Trace, "trace": "NaN 100\n1 100"}, "line 1: expected 0 to"},
		"back in time":      {map[string]any{"pattern": Trace, "trace": "1 100\n0 100"}, "line 2: expected a time of at least"},
		"too small":         {map[string]any{"pattern": Trace, "trace": "0 23\n1 100"}, "line 1: expected 24 to"},
		"all at once":       {map[string]any{"pattern": Trace, "trace": "0 100\n0 100"}, "at most 1000 a second"},
		"more than allowed": {map[string]any{"pattern": Trace, "trace": strings.Repeat("0 100\n", MaxTrace+1)}, "at most 100000 packets"},
	} {
		if _, err := Read(c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}

func FuzzTrace(f *testing.F) {
	f.Add("0 100\n0.02 100\n")
	f.Add("# x\n1e3,24\r\n2e3 8972")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read(map[string]any{"pattern": Trace, "trace": text})
		if err != nil {
			return
		}
		src, last := s.Source(1), time.Duration(0)
		for range 3 * len(s.Trace) {
			p := src.Next()
			if p.At < last || p.Bytes < MinBytes || p.Bytes > MaxBytes {
				t.Fatalf("%+v after %s", p, last)
			}
			last = p.At
		}
	})
}

// TestCapacity: the options of a search, which goes over UDP alone.
func TestCapacity(t *testing.T) {
	s, err := Read(map[string]any{"pattern": Capacity, "transport": UDP, "highest_kbit_per_second": 64.0, "hold": 2000.0})
	if err != nil || s.Highest != 64e3 || s.Hold != 2*time.Second {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Read(map[string]any{"pattern": Capacity, "transport": DCCP}); err == nil || !strings.Contains(err.Error(), "the pattern capacity needs the transport udp, found dccp") {
		t.Error(err)
	}
}
