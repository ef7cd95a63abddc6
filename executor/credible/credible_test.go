package credible

import (
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/protocols/contract"
)

func reason(f *Fault) string {
	if f == nil {
		return ""
	}
	return f.Reason
}

func TestClock(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	seen := func(ready, connected, result int) Seen {
		return Seen{Started: start, Ready: at(ready), Connected: at(connected), Result: at(result)}
	}
	noConnected := seen(10, 0, 31_010)
	noConnected.Connected = time.Time{}
	for name, c := range map[string]struct {
		seen             Seen
		connect, elapsed int // milliseconds
		want             string
	}{
		"as seen":                               {seen(10, 1010, 31_010), 1000, 30_000, ""},
		"events read late, connected latest":    {seen(10, 1410, 31_010), 1000, 30_000, ""},
		"events read late, result latest":       {seen(10, 1010, 31_500), 1000, 30_000, ""},
		"clock at 0.8 of real time":             {seen(10, 1010, 31_010), 800, 24_000, journal.ReasonShorterThanRun},
		"clock at 0.95 of real time":            {seen(10, 1010, 31_010), 950, 28_500, journal.ReasonShorterThanRun},
		"clock at 1.2 of real time":             {seen(10, 1010, 31_010), 1200, 36_000, journal.ReasonLongerThanRun},
		"transfer alone longer than seen":       {seen(10, 16_010, 31_010), 0, 20_000, journal.ReasonLongerThanRun},
		"connecting is claimed to take nothing": {seen(10, 16_010, 31_010), 0, 15_000, journal.ReasonShorterThanRun},
		"no connected event, true":              {noConnected, 1000, 30_000, ""},
		"no connected event, longer":            {noConnected, 1000, 33_000, journal.ReasonLongerThanRun},
		"short and slow by less than tolerance": {seen(10, 20, 420), 10, 320, ""},
	} {
		got := c.seen.Clock(time.Duration(c.connect)*time.Millisecond, time.Duration(c.elapsed)*time.Millisecond, &RealTime)
		if reason(got) != c.want {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
	none := Seen{Started: start}
	if f := none.Clock(time.Hour, time.Hour, &RealTime); f != nil {
		t.Errorf("a client without a result: %+v", f)
	}
	slow := seen(10, 1010, 31_010)
	if m := slow.Clock(800*time.Millisecond, 24*time.Second, &RealTime).Message; !strings.Contains(m, "24.000 s") || !strings.Contains(m, "30.000 s") {
		t.Errorf("message %q does not have both values", m)
	}
}

// In virtual time a clock at 0.8 is found in a transfer of 0.15 s.
func TestClockInVirtualTime(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	seen := Seen{Started: start, Ready: start, Connected: start.Add(10 * time.Millisecond), Result: start.Add(160 * time.Millisecond)}
	for elapsed, want := range map[time.Duration]string{
		150 * time.Millisecond: "",
		131 * time.Millisecond: "",
		120 * time.Millisecond: journal.ReasonShorterThanRun,
		180 * time.Millisecond: journal.ReasonLongerThanRun,
	} {
		if f := seen.Clock(10*time.Millisecond, elapsed, At(journal.PlaceVirtual)); reason(f) != want {
			t.Errorf("%s: %+v, expected %q", elapsed, f, want)
		}
		if f := seen.Clock(10*time.Millisecond, elapsed, At("emulated, real time")); f != nil {
			t.Errorf("%s in real time: %+v", elapsed, f)
		}
	}
}

func TestSent(t *testing.T) {
	if f := Sent(1000, 1000); f != nil {
		t.Error(f)
	}
	if f := Sent(1001, 1000); reason(f) != journal.ReasonMoreThanSent || !strings.Contains(f.Message, "1001") || !strings.Contains(f.Message, "1000") {
		t.Errorf("%+v", f)
	}
}

// network is client – relay – server; the second hop's rate follows a trace.
func network(medium radio.Medium) *radio.Network {
	return &radio.Network{MTUBytes: 1500, Medium: medium, FEC: &radio.FEC{CodeRate: 0.5}, Links: []radio.Link{
		{A: radio.RoleClient, B: radio.RoleRelay, RateBitsPerSecond: 1e6},
		{A: radio.RoleServer, B: radio.RoleRelay, RateBitsPerSecond: 1000,
			Channel: radio.Channel{Model: radio.ChannelCombined, Parts: []radio.Channel{{Model: radio.ChannelPerfect}, {Model: radio.ChannelTrace, Trace: &radio.Trace{RateBitsPerSecond: []float64{0, 128_000, 64_000}}}}}},
	}}
}

// What the other end sends is counted here, too: payload, or the answers to it.
func TestReceived(t *testing.T) {
	for _, c := range []struct {
		payload, counted int64
		right            bool
	}{{0, 100, true}, {0, 84, false}, {5000, 5000, true}, {5000, 4999, false}} {
		if got := Received(c.payload, c.counted); (got == "") != c.right {
			t.Errorf("%d bytes of payload and %d counted: %q", c.payload, c.counted, got)
		}
	}
}

func TestFaster(t *testing.T) {
	// 8000 bytes in six packets, 8120 bytes with headers, take 1.015 s at the second
	// hop's 64 kbit/s of user bits, the answer 2.6 ms; at the first hop's 500 kbit/s
	// 130 ms and 0.3 ms.
	flow := func(elapsed, end time.Duration) *Flow {
		return &Flow{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 8000, Elapsed: elapsed, End: end}
	}
	s := func(x float64) time.Duration { return time.Duration(x * 1e9) }
	full, shared := network(radio.MediumFullDuplex), network(radio.MediumShared)
	slotted := network(radio.MediumShared)
	slotted.Access = &radio.Access{TDMA: &radio.TDMA{Slot: s(0.5), Owners: []radio.Role{radio.RoleClient, radio.RoleRelay}}}
	framed := network(radio.MediumShared)
	framed.Framing = &radio.Framing{FrameBytes: 200, HeaderBytes: 6}
	framedSlots := network(radio.MediumShared)
	framedSlots.Framing, framedSlots.Access = framed.Framing, slotted.Access
	for name, c := range map[string]struct {
		network *radio.Network
		flow    *Flow
		ideal   time.Duration
		want    string
	}{
		"real radio":                                {nil, flow(s(0.001), 0), 0, ""},
		"at the radio's rate":                       {full, flow(s(1.018), 0), 0, ""},
		"by tolerance above it":                     {full, flow(s(1.006), 0), 0, ""},
		"above the radio's rate":                    {full, flow(s(1.005), 0), 0, journal.ReasonFasterThanRadio},
		"hops share the medium: at its rate":        {shared, flow(s(1.148), 0), 0, ""},
		"hops share the medium: above its rate":     {shared, flow(s(1.134), 0), 0, journal.ReasonFasterThanRadio},
		"slower than Ideal":                         {full, flow(s(5), s(10)), s(9.9), ""},
		"as fast as Ideal, by rounding":             {full, flow(s(5), s(9.85)), s(9.9), ""},
		"117 % of Ideal":                            {full, flow(s(5), s(10/1.17)), s(10), journal.ReasonFasterThanIdeal},
		"no Ideal":                                  {full, flow(s(5), s(1)), 0, ""},
		"end not known":                             {full, flow(s(5), 0), s(10), ""},
		"hops share the medium: a few packets":      {shared, flow(s(5), s(9.2)), s(10), ""},
		"hops share the medium: more than a few":    {shared, flow(s(5), s(9.0)), s(10), journal.ReasonFasterThanIdeal},
		"hops share the medium in slots: one round": {slotted, flow(s(5), s(8.2)), s(10), ""},
		"hops share the medium, frames one by one":  {framed, flow(s(5), s(9.0)), s(10), ""},
		"frames in slots: more than one round":      {framedSlots, flow(s(5), s(7.5)), s(10), journal.ReasonFasterThanIdeal},
	} {
		if got := Faster(c.network, c.flow, c.ideal, &RealTime); reason(got) != c.want {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
	if got := Faster(full, flow(s(5), s(9.93)), s(10), &RealTime); got != nil {
		t.Errorf("70 ms before Ideal in real time: %+v", got)
	}
	if got := Faster(full, flow(s(5), s(9.93)), s(10), &VirtualTime); reason(got) != journal.ReasonFasterThanIdeal {
		t.Errorf("70 ms before Ideal in virtual time: %+v", got)
	}
}

// What the least time has in it, on one link at 80 kbit/s: 10 bytes take a
// millisecond.
func TestLeast(t *testing.T) {
	ms := func(x float64) time.Duration { return time.Duration(x * 1e6) }
	flow := &Flow{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 200}
	for name, c := range map[string]struct {
		change func(*radio.Network)
		want   time.Duration
	}{
		// two packets of 120 bytes, the answer of 21
		"headers and the answer":     {func(*radio.Network) {}, ms(24 + 2.1)},
		"propagation there and back": {func(n *radio.Network) { n.Links[0].Delay = ms(100) }, ms(226.1)},
		"overhead of a packet":       {func(n *radio.Network) { n.FrameOverheadBytes = 10 }, ms(26 + 3.1)},
		"frames as full as they are": {func(n *radio.Network) { n.Framing = &radio.Framing{FrameBytes: 50, HeaderBytes: 10} }, ms(30 + 3.1)},
		"code":                       {func(n *radio.Network) { n.FEC = &radio.FEC{CodeRate: 0.5} }, ms(52.2)},
		"turnaround":                 {func(n *radio.Network) { n.Medium, n.Turnaround = radio.MediumHalfDuplex, ms(50) }, ms(76.1)},
		"turnaround with propagation": {func(n *radio.Network) {
			n.Medium, n.Turnaround, n.Links[0].Delay = radio.MediumHalfDuplex, ms(50), ms(40)
		}, ms(116.1)},
		"no turnaround with both ways at once": {func(n *radio.Network) { n.Turnaround = ms(50) }, ms(26.1)},
		// Between the two packets, and before the answer, the medium is idle for the
		// longer of turnaround and DIFS.
		"CSMA, turnaround": {func(n *radio.Network) {
			n.Medium, n.Turnaround, n.Access = radio.MediumShared, ms(50), &radio.Access{CSMA: &radio.CSMA{DIFS: ms(1), Slot: ms(5), WindowMin: 15}}
		}, ms(126.1)},
		"CSMA, DIFS": {func(n *radio.Network) {
			n.Medium, n.Turnaround, n.Access = radio.MediumShared, ms(2), &radio.Access{CSMA: &radio.CSMA{DIFS: ms(4), Slot: ms(5), WindowMin: 15}}
		}, ms(34.1)},
		"CSMA, a relay": {func(n *radio.Network) {
			n.Medium, n.Access = radio.MediumShared, &radio.Access{CSMA: &radio.CSMA{DIFS: ms(4)}}
			n.Links[0].B = radio.RoleRelay
			n.Links = append(n.Links, radio.Link{A: radio.RoleRelay, B: radio.RoleServer, RateBitsPerSecond: 80e3})
		}, ms(24 + 24 + 3*4 + 4 + 2*2.1)},
		// 24 ms on the air in slots of 10 ms, of which 8 can be used: two whole rounds
		// pass before the last 8 ms, and one where the radio has two slots of three.
		"TDMA, one slot of three": {func(n *radio.Network) {
			slots(n, ms(10), ms(2), radio.RoleClient, radio.RoleServer, radio.RoleServer)
		}, ms(2*30 + 8 + 2.1)},
		"TDMA, two slots of three": {func(n *radio.Network) {
			slots(n, ms(10), ms(2), radio.RoleClient, radio.RoleServer, radio.RoleClient)
		}, ms(30 + 8 + 2.1)},
		"TDMA, slots of a radio that is not there": {func(n *radio.Network) {
			slots(n, ms(10), ms(2), radio.RoleClient, radio.RoleRelay, radio.RoleServer)
		}, ms(2*20 + 8 + 2.1)},
		"TDMA, all in one slot": {func(n *radio.Network) {
			slots(n, ms(30), 0, radio.RoleClient, radio.RoleServer)
		}, ms(26.1)},
		"the shortest delay of a trace": {func(n *radio.Network) {
			n.Links[0].Delay = ms(100)
			n.Links[0].Channel = radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Delay: []time.Duration{ms(30), ms(10)}}}
		}, ms(46.1)},
		"another delay on the way back": {func(n *radio.Network) {
			n.Links[0].Delay = ms(100)
			n.Links[0].Back = &radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Delay: []time.Duration{ms(30)}}}
		}, ms(156.1)},
		"a relay, one transmission at a time": {func(n *radio.Network) {
			n.Medium, n.Turnaround = radio.MediumShared, ms(5)
			n.Links[0].B = radio.RoleRelay
			n.Links = append(n.Links, radio.Link{A: radio.RoleRelay, B: radio.RoleServer, RateBitsPerSecond: 80e3, Delay: ms(10)})
		}, ms(24 + 24 + 5 + 10 + 10 + 2*2.1)},
		"a relay, both hops at once": {func(n *radio.Network) {
			n.Links[0].B = radio.RoleRelay
			n.Links = append(n.Links, radio.Link{A: radio.RoleRelay, B: radio.RoleServer, RateBitsPerSecond: 40e3, Delay: ms(10)})
		}, ms(48 + 10 + 10 + 2.1 + 4.2)},
	} {
		n := &radio.Network{MTUBytes: 120, Medium: radio.MediumFullDuplex, Links: []radio.Link{{A: radio.RoleClient, B: radio.RoleServer, RateBitsPerSecond: 80e3}}}
		c.change(n)
		if got := Least(n, flow); got.Round(time.Microsecond) != c.want {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
}

// slots gives a network of client and server turns in time slots.
func slots(n *radio.Network, slot, guard time.Duration, owners ...radio.Role) {
	n.Medium, n.Access = radio.MediumShared, &radio.Access{TDMA: &radio.TDMA{Slot: slot, Guard: guard, Owners: owners}}
	n.Nodes = []radio.Node{{Role: radio.RoleClient}, {Role: radio.RoleServer}}
}

func TestDelivered(t *testing.T) {
	n := network(radio.MediumShared)
	hops := func(first, second, back int64) []radiocontrol.Hop {
		return []radiocontrol.Hop{
			{From: radio.RoleClient, To: radio.RoleRelay, DeliveredBytes: first}, {From: radio.RoleRelay, To: radio.RoleServer, DeliveredBytes: second},
			{From: radio.RoleServer, To: radio.RoleRelay, DeliveredBytes: back}, {From: radio.RoleRelay, To: radio.RoleClient, DeliveredBytes: back}}
	}
	two := []Flow{{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 600}, {From: radio.RoleRelay, To: radio.RoleServer, SizeBytes: 500}}
	back := []Flow{{From: radio.RoleServer, To: radio.RoleClient, SizeBytes: 600}}
	for name, c := range map[string]struct {
		flows []Flow
		hops  []radiocontrol.Hop
		want  string
	}{
		"all of both":              {two, hops(600, 1100, 0), ""},
		"the second hop too few":   {two, hops(2000, 1099, 0), journal.ReasonMoreThanSent},
		"the first hop too few":    {two, hops(599, 2000, 0), journal.ReasonMoreThanSent},
		"the other way":            {back, hops(0, 0, 600), ""},
		"the other way, too few":   {back, hops(9999, 9999, 599), journal.ReasonMoreThanSent},
		"nothing counted, nothing": {nil, hops(0, 0, 0), ""},
		"no report":                {two, nil, ""},
	} {
		if got := Delivered(n, c.flows, &radiocontrol.Report{Hops: c.hops}, nil); reason(got) != c.want {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
}

// A server counts no byte before it has handed it over.
func TestHanded(t *testing.T) {
	for counted, want := range map[int64]string{0: "", 99: "", 100: "", 101: journal.ReasonMoreThanSent} {
		if got := Handed(counted, 100); reason(got) != want || want != "" && !strings.Contains(got.Message, "101 bytes") {
			t.Errorf("%d of 100: %+v, expected %q", counted, got, want)
		}
	}
}

func TestEnds(t *testing.T) {
	client := End{SizeBytes: 1000, Elapsed: 10 * time.Second, Digest: "d"}
	for name, c := range map[string]struct {
		server End
		want   string
	}{
		"as the client":           {End{SizeBytes: 1000, Elapsed: 10 * time.Second, Digest: "d"}, ""},
		"within the client's":     {End{SizeBytes: 1000, Elapsed: time.Second, Digest: "d"}, ""},
		"longer by the tolerance": {End{SizeBytes: 1000, Elapsed: 10_700 * time.Millisecond, Digest: "d"}, ""},
		"longer than the client":  {End{SizeBytes: 1000, Elapsed: 10_701 * time.Millisecond, Digest: "d"}, journal.ReasonServerIsLonger},
		"another size":            {End{SizeBytes: 999, Elapsed: 10 * time.Second, Digest: "d"}, journal.ReasonSizeDiffers},
		"another digest":          {End{SizeBytes: 1000, Elapsed: 10 * time.Second, Digest: "e"}, journal.ReasonDigestDiffers},
		"an error":                {End{Code: "corrupted", Message: "byte 7"}, journal.ReasonServerFailed},
		"a rule of the server's":  {End{Code: journal.ReasonMoreThanSent, Message: "8 of 7"}, journal.ReasonMoreThanSent},
		"packets as long":         {End{SizeBytes: 1000, Elapsed: time.Second, Digest: "d", Packets: 10_022 * time.Millisecond}, ""},
		"packets took longer":     {End{SizeBytes: 1000, Elapsed: time.Second, Digest: "d", Packets: 10_023 * time.Millisecond}, journal.ReasonFasterThanPackets},
	} {
		if got := Ends(&client, &c.server); reason(got) != c.want {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
}

// TestTwoRadios: the least time is that of the payload divided between both, and what
// they deliver counts together.
func TestTwoRadios(t *testing.T) {
	n := network(radio.MediumFullDuplex)
	f := &Flow{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1 << 20}
	alone := Least(n, f)
	n.Second = network(radio.MediumFullDuplex)
	both := LeastOfBoth(n, f)
	if both > alone*6/10 || both < alone/2 {
		t.Errorf("both radios need %s, one alone %s", both, alone)
	}
	f.Elapsed = both
	if got := Faster(n, f, 0, At("")); got != nil {
		t.Errorf("the least time over both is refused: %+v", got)
	}
	f.Elapsed = both * 9 / 10
	if got := reason(Faster(n, f, 0, At(""))); got != journal.ReasonFasterThanRadio {
		t.Errorf("less than both need: %q", got)
	}
	hop := radiocontrol.Hop{From: radio.RoleClient, To: radio.RoleRelay, DeliveredBytes: 600_000}
	second := hop
	second.Second = true
	if got := Delivered(n, []Flow{*f}, &radiocontrol.Report{Hops: []radiocontrol.Hop{hop, second}}, nil); got != nil {
		t.Errorf("half of the payload over each: %+v", got)
	}
	second.DeliveredBytes = 400_000
	if got := reason(Delivered(n, []Flow{*f}, &radiocontrol.Report{Hops: []radiocontrol.Hop{hop, second}}, nil)); got != journal.ReasonMoreThanSent {
		t.Errorf("less than the payload over both: %q", got)
	}
}

// Of a probe's packets no more can have been received than arrived over the radio.
func TestArrived(t *testing.T) {
	for packets, want := range map[int64]string{100: "", 101: "", 99: journal.ReasonMoreThanSent} {
		if got := Arrived(100, packets); reason(got) != want {
			t.Errorf("of %d packets: %+v, expected %q", packets, got, want)
		}
	}
}

// Of what was sent no more can have been sent again, and the payload was sent once.
func TestAgain(t *testing.T) {
	for name, c := range map[string]struct {
		all, again, payload int64
		want                string
	}{
		"nothing lost":                {1024, 0, 1000, ""},
		"some sent again":             {1524, 500, 1000, ""},
		"all of it payload":           {1500, 500, 1000, ""},
		"payload that was not sent":   {1499, 500, 1000, journal.ReasonMoreThanSent},
		"more again than in all":      {1499, 1500, 0, journal.ReasonMoreThanSent},
		"a path with its counts left": {600, 500, 0, ""},
	} {
		if got := Again(&contract.Sample{TransmittedBytes: &c.all, RetransmittedBytes: &c.again}, c.payload); reason(got) != c.want {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
	for _, s := range []*contract.Sample{nil, {}, {RetransmittedBytes: new(int64(7))}} {
		if got := Again(s, 1000); got != nil {
			t.Errorf("%+v: %+v, expected nothing: it is not known", s, got)
		}
	}
}
