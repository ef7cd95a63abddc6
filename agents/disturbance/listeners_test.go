package disturbance

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/agents/packettimes"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/namespace/namespacetest"
)

// counts is what a test says has passed.
type counts struct {
	all   map[int]packettimes.Bytes
	err   error
	takes func() // what happens after the counts were read; nil: nothing
}

func (c *counts) Attach() error { return nil }

func (c *counts) Each(f func(int, packettimes.Bytes)) error {
	for port, b := range c.all {
		f(port, b)
	}
	if c.takes != nil {
		c.takes()
	}
	return c.err
}

func (c *counts) add(port int, sent, received uint64) {
	b := c.all[port]
	c.all[port] = packettimes.Bytes{Sent: b.Sent + sent, Received: b.Received + received, SentPayload: b.SentPayload + sent/2, ReceivedPayload: b.ReceivedPayload + received/2}
}

// Looks with about as many bytes are one span; what begins, ends or changes its rate is
// another one, and so is what a late look has found. Nothing is lost or counted twice at the
// end of a record.
func TestPortSpans(t *testing.T) {
	c := &counts{all: map[int]packettimes.Bytes{5003: {Sent: 900}}}
	now := time.Hour
	p := newPortTally(c, func() time.Duration { return now })
	pass := func(steps int, step time.Duration, port int, sent, received uint64) {
		for range steps {
			now += step
			if sent+received > 0 {
				c.add(port, sent, received)
			}
			p.look()
		}
	}
	require.Empty(t, p.drain(now).Spans, "what passed before")
	pass(3, portStep, 5001, 4000, 40)
	pass(1, portStep, 5001, 2500, 40) // more than half of it
	pass(2, portStep, 5001, 100, 40)
	pass(3, portStep, 0, 0, 0)
	pass(1, portStep, 5001, 0, 1400) // as few
	pass(4, portStep, 0, 0, 0)
	pass(1, portStep, 5001, 0, 1400)
	pass(1, lateStep+1, 5001, 100, 0)
	pass(1, portStep/2, 5002, 50, 0)
	require.Equal(t, &journal.ListenerTraffic{Spans: []journal.PortSpan{
		{Port: 5001, After: 0, Length: 4 * portStep, Sent: 14500, Received: 160, SentPayload: 7250, ReceivedPayload: 80},
		{Port: 5001, After: 4 * portStep, Length: 6 * portStep, Sent: 200, Received: 1480, SentPayload: 100, ReceivedPayload: 740},
		{Port: 5001, After: 14 * portStep, Length: portStep, Received: 1400, ReceivedPayload: 700},
		{Port: 5001, After: 15 * portStep, Length: lateStep + 1, Sent: 100, SentPayload: 50, Coarse: true},
		{Port: 5002, After: 15*portStep + lateStep + 1, Length: portStep / 2, Sent: 50, SentPayload: 25},
	}}, p.drain(time.Hour))
	from := now
	c.err = errors.New("no right")
	pass(1, portStep, 5001, 2, 0)
	c.err = nil
	require.Equal(t, &journal.ListenerTraffic{Spans: []journal.PortSpan{{Port: 5001, After: 0, Length: portStep, Sent: 2, SentPayload: 1}}, Unknown: "no right"}, p.drain(from))

	// A look that itself takes long: what it finds may have passed until its end.
	from = now
	pass(1, portStep, 0, 0, 0)
	c.add(5001, 2, 0)
	c.takes = func() { now += 2 * portStep }
	p.look()
	c.takes = nil
	c.add(5001, 4, 0)
	p.look()
	require.Equal(t, []journal.PortSpan{
		{Port: 5001, After: portStep, Length: 2 * portStep, Sent: 2, SentPayload: 1, Coarse: true},
		{Port: 5001, After: portStep, Length: 2 * portStep, Sent: 4, SentPayload: 2, Coarse: true},
	}, p.drain(from).Spans)

	// Traffic that begins and stops all the time has a bounded number of spans, which have
	// all of it.
	from = now
	for range 1000 {
		pass(1, portStep, 5001, 3, 0)
		pass(5, portStep, 0, 0, 0)
	}
	got := p.drain(from)
	require.Empty(t, got.Unknown)
	require.LessOrEqual(t, len(got.Spans), mostSpans)
	require.Greater(t, len(got.Spans), mostSpans/4)
	sum, end := int64(0), time.Duration(0)
	for i, s := range got.Spans {
		require.Equal(t, i < len(got.Spans)-1 && s.Length > portStep, s.Coarse)
		require.GreaterOrEqual(t, s.After, end)
		sum, end = sum+s.Sent, s.After+s.Length
	}
	require.Equal(t, int64(3000), sum)
	require.LessOrEqual(t, end, now-from)
}

// Where listeners' ports are counted, records have their traffic and the other traffic
// without any rule; what is not on the air is left out unless a rule is about all of it.
func TestTrafficWithoutRules(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	namespacetest.IP(t, "link add radio0 type veth peer name far0")
	namespacetest.IP(t, "addr add 10.77.0.1/24 dev radio0")
	namespacetest.IP(t, "addr add fd77::1/64 dev radio0 nodad")
	namespacetest.IP(t, "link set far0 up")
	namespacetest.IP(t, "link set radio0 up")
	namespacetest.IP(t, "neigh add 10.77.0.2 lladdr 02:00:00:00:00:02 dev radio0")
	namespacetest.IP(t, "neigh add fd77::2 lladdr 02:00:00:00:00:02 dev radio0")
	conversations := func(rules *runsheet.Valid) (other map[string]int64, listeners *journal.ListenerTraffic) {
		ports, err := packettimes.StartTraffic("radio0")
		require.NoError(t, err)
		defer func() { require.NoError(t, ports.Close()) }()
		r := &recorded{}
		w := Start(t.Context(), Config{Rules: rules, Ports: ports, Apart: []netip.AddrPort{netip.MustParseAddrPort("10.77.0.2:161")}, Devices: []string{"radio0"}, Leading: true, Record: r.add})
		for _, to := range []string{"10.77.0.2:161", "10.77.0.2:162", "10.77.0.2:5001", "[fd77::2]:5002", "[fd77::2]:5003", "[fd77::2]:163"} {
			conn, err := net.Dial("udp", to)
			require.NoError(t, err)
			size := 100
			if strings.HasSuffix(to, ":5003") {
				size = 4000 // in fragments
			}
			_, err = conn.Write(make([]byte, size))
			require.NoError(t, err)
			require.NoError(t, conn.Close())
		}
		other, listeners = map[string]int64{}, &journal.ListenerTraffic{}
		all := func() bool {
			w.Flush()
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, x := range r.all {
				require.NotNil(t, x.Listeners)
				listeners.Spans = append(listeners.Spans, x.Listeners.Spans...)
				if x.Other != nil {
					for _, c := range x.Other.Most {
						other[c.What] = c.Bytes
					}
				}
			}
			r.all = nil
			_, last := other["UDP fd77::1 → [fd77::2]:163"]
			return last && len(listeners.Spans) >= 2
		}
		require.Eventually(t, all, 10*time.Second, 10*time.Millisecond, "%v %v", other, listeners)
		w.Stop()
		for what := range maps.Clone(other) {
			if !strings.HasPrefix(what, "UDP ") {
				delete(other, what) // neighbours that look for one another
			}
		}
		return other, listeners
	}
	for _, rules := range []*runsheet.Valid{nil, {ClockStep: time.Second}, {Interfering: &runsheet.Interfering{}}} {
		t.Run(fmt.Sprintf("%+v", rules), func(t *testing.T) {
			other, listeners := conversations(rules)
			want := map[string]int64{"UDP 10.77.0.1 → 10.77.0.2:162": 128, "UDP fd77::1 → [fd77::2]:163": 148}
			if rules != nil && rules.Interfering != nil {
				want["UDP 10.77.0.1 → 10.77.0.2:161"] = 128
			}
			require.Equal(t, want, other)
			sent := map[int]int64{}
			for _, s := range listeners.Spans {
				sent[s.Port] += s.Sent
			}
			require.Equal(t, map[int]int64{5001: 128, 5002: 148}, sent)
		})
	}
}
