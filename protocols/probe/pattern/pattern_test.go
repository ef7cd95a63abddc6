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

// TestMessages: messages follow each other in turn, each of as few packets as it can have,
// and leave the rate its time.
func TestMessages(t *testing.T) {
	s, err := Read(map[string]any{"pattern": Messages, "messages": "20 2401 20", "message_packet": int64(1200), "message_kbit_per_second": 8.0})
	if err != nil {
		t.Fatal(err)
	}
	src := s.Source(5)
	var got []Packet
	for range 11 {
		got = append(got, src.Next())
	}
	for i, bytes := range []int{20, 801, 800, 800, 20, 20, 801, 800, 800, 20, 20} {
		if got[i].Bytes != bytes {
			t.Errorf("packet %d: %d bytes, expected %d", i, got[i].Bytes, bytes)
		}
	}
	// 48 bytes take 48 ms at 8 kbit/s, and 2401 with three headers 2485.
	for _, x := range []struct {
		from, to int
		pause    time.Duration
	}{{0, 1, 48 * time.Millisecond}, {1, 3, 0}, {3, 4, 2485 * time.Millisecond}, {4, 5, 48 * time.Millisecond}} {
		if d := got[x.to].At - got[x.from].At; d < x.pause || d > x.pause*11/10 {
			t.Errorf("from packet %d to %d %s, expected %s and at most a tenth more", x.from, x.to, d, x.pause)
		}
	}
	if other := take(s, 6, 30*time.Second); other[4].At == got[4].At || take(s, 5, 30*time.Second)[4].At != got[4].At {
		t.Error("the seed does not decide the pauses")
	}
	if want := 8 * 2441 / (2.581 * 1.05); math.Abs(s.BitsPerSecond()-want) > 1 {
		t.Errorf("%f bit/s, expected %f", s.BitsPerSecond(), want)
	}
	for packet, want := range map[int64]Message{0: {0, 20, 1}, 1: {1, 2401, 3}, 3: {1, 2401, 3}, 4: {2, 20, 1}, 5: {3, 20, 1}, 8: {4, 2401, 3}} {
		if m := s.MessageOf(packet); m != want {
			t.Errorf("packet %d: %+v, expected %+v", packet, m, want)
		}
	}
	// Of nine packets the last one belongs to a message that was not sent whole.
	for size, want := range map[int]int64{20: 3, 2401: 2} {
		if n := s.MessagesIn(9, size); n != want {
			t.Errorf("%d messages of %d bytes, expected %d", n, size, want)
		}
	}
	if n := s.MessagesIn(8, 2401); n != 1 {
		t.Errorf("%d messages of 2401 bytes in 8 packets", n)
	}
}

// TestMessagesBounded: many small messages are no more packets than a probe may send.
func TestMessagesBounded(t *testing.T) {
	s, err := Read(map[string]any{"pattern": Messages, "message_kbit_per_second": 1e6})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(take(s, 1, time.Second)); n > MaxRate+9 || n < 900 { // the last message is whole
		t.Errorf("%d packets in a second", n)
	}
}

func TestMessagesRefused(t *testing.T) {
	for _, c := range []struct {
		name, value any
		want        string
	}{
		{"messages", "", "expected 1 to 64 sizes in bytes, apart by spaces, found 0"},
		{"messages", strings.Repeat("20 ", 65), "found 65"},
		{"messages", "19", "expected sizes of 20 to 65536 bytes, found \"19\""},
		{"messages", "20 65537", "found \"65537\""},
		{"messages", "20,100", "found \"20,100\""},
		{"messages", "20 21 22 23 24 25 26 27 28", "at most 8 different sizes, found 9"},
		{"message_packet", int64(63), "message_packet: expected 64 to 8972 bytes, found 63"},
		{"message_kbit_per_second", 0.01, "message_kbit_per_second: expected 0.1 to 1000000, found 0.01"},
		{"transport", DCCP, "the pattern messages needs the transport udp, found dccp"},
	} {
		if _, err := Read(map[string]any{"pattern": Messages, c.name.(string): c.value}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: %v, expected %q", c.name, c.value, err, c.want)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add("20 100 1024 10240", int64(1200), 16.0, uint16(30))
	f.Add("65536 20", int64(64), 1e6, uint16(2000))
	f.Fuzz(func(t *testing.T, text string, packet int64, rate float64, count uint16) {
		s, err := Read(map[string]any{"pattern": Messages, "messages": text, "message_packet": packet, "message_kbit_per_second": rate})
		if err != nil {
			return
		}
		src, last, bytes := s.Source(1), time.Duration(0), map[int64]int{}
		for n := range int64(count) {
			p, m := src.Next(), s.MessageOf(n)
			if p.At < last || p.Bytes < MinMessage || p.Bytes > s.MessagePacket {
				t.Fatalf("%+v after %s", p, last)
			}
			last, bytes[m.Number] = p.At, bytes[m.Number]+p.Bytes
			if bytes[m.Number] > m.Bytes {
				t.Fatalf("%d bytes of %+v", bytes[m.Number], m)
			}
		}
		whole := int64(0)
		for _, size := range s.MessageSizes() {
			whole += s.MessagesIn(int64(count), size)
		}
		for number, n := range bytes {
			if want := s.Messages[number%int64(len(s.Messages))]; (n == want) != (number < whole) {
				t.Fatalf("message %d of %d whole ones: %d bytes of %d", number, whole, n, want)
			}
		}
	})
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
