package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
	"linktrial/orchestrator/report"
	"linktrial/protocols/contract"
)

// watchedRun is a run whose nodes tell what they watched around the first attempt.
type watchedRun struct {
	nodes map[radio.Role]*Node
	clock map[radio.Role]Clock
}

// watched adds a record of 20 s of the run, in which the attempt lies.
func (r *watchedRun) watched(role radio.Role, change func(*journal.Watched)) {
	w := journal.Watched{Since: begin, Until: begin.Add(20 * time.Second)}
	if change != nil {
		change(&w)
	}
	r.nodes[role].Watched = append(r.nodes[role].Watched, Watched{r.clock[role], w})
}

// step has a node's clock step: its journal tells it before what was watched.
func (r *watchedRun) step(role radio.Role, by time.Duration) {
	c := r.clock[role]
	c.Offset -= by
	r.clock[role] = c
}

func (r *watchedRun) all(rest ...radio.Role) {
	for role := range r.nodes {
		watched := true
		for _, x := range rest {
			watched = watched && x != role
		}
		if watched {
			r.watched(role, nil)
		}
	}
}

func other(after time.Duration, bytes int64) func(*journal.Watched) {
	return func(w *journal.Watched) {
		w.Other = &journal.OtherTraffic{Packets: 3, Bytes: []journal.BytesAt{{After: after, Bytes: bytes}}, Most: []journal.Conversation{{What: "UDP 10.77.0.1:7 → 10.77.0.3:9", Bytes: bytes}}}
	}
}

func spans(all ...journal.PortSpan) func(*journal.Watched) {
	return func(w *journal.Watched) { w.Listeners = &journal.ListenerTraffic{Spans: all} }
}

func late(after, missed time.Duration) func(*journal.Watched) {
	return func(w *journal.Watched) {
		w.Host = &journal.HostWatched{HostLoad: journal.HostLoad{Missed: missed}, Late: []journal.LateAt{{After: after, Missed: missed}}}
	}
}

func stepped(step, until time.Duration) func(*journal.Watched) {
	return func(w *journal.Watched) {
		w.Until, w.ClockStep, w.ClockLook = w.Since.Add(until), step, time.Second
	}
}

// A rule that is broken during an attempt makes it invalid, with both values, whether
// it succeeded or failed, and its trial is repeated; at another time it does not. What
// is not known is kept with the attempt, which counts.
func TestRulesOfValidity(t *testing.T) {
	clockRule := runsheet.Valid{ClockStep: 100 * time.Millisecond}
	share := runsheet.Valid{Interfering: &runsheet.Interfering{Share: 0.05}} // of 1000 bytes
	size := runsheet.Valid{Interfering: &runsheet.Interfering{Bytes: 2048}}
	hostRule := runsheet.Valid{HostShare: 0.05}
	const during, after = 10500 * time.Millisecond, 12 * time.Second
	for name, c := range map[string]struct {
		rules     runsheet.Valid
		tell      func(r *watchedRun)
		mark      string // empty: none
		undecided string // contained in it; empty: nothing is undecided
		waits     bool   // it is not decided before the run's end
		driver    bool   // the mark is for a value of the driver: of successes alone, and not repeated
	}{
		"clock: nothing": {rules: clockRule, tell: func(r *watchedRun) { r.all() }},
		"clock: a small one": {rules: clockRule, tell: func(r *watchedRun) {
			r.step(radio.RoleServer, 99*time.Millisecond)
			r.watched(radio.RoleServer, stepped(99*time.Millisecond, during))
			r.watched(radio.RoleServer, func(w *journal.Watched) { w.Since = w.Since.Add(during + 99*time.Millisecond) })
			r.all(radio.RoleServer)
		}},
		"clock: stepped": {rules: clockRule, tell: func(r *watchedRun) {
			r.step(radio.RoleServer, -3*time.Second)
			r.watched(radio.RoleServer, stepped(-3*time.Second, during))
			r.watched(radio.RoleServer, func(w *journal.Watched) { w.Since = w.Since.Add(during - 3*time.Second) })
			r.all(radio.RoleServer)
		}, mark: "rule clock_step: the clock of the server stepped by -3s, at most 100ms are allowed"},
		"clock: not watched for a while": {rules: clockRule, tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, func(w *journal.Watched) { w.Until = w.Since.Add(during) })
			r.watched(radio.RoleRelay, func(w *journal.Watched) { w.Since = w.Since.Add(after) })
			r.all(radio.RoleRelay)
		}, undecided: "rule clock_step: the relay was not watched from 12:00:10.5 UTC to 12:00:11."},
		"host: too much": {rules: hostRule, tell: func(r *watchedRun) {
			r.watched(radio.RoleServer, late(during, 90*time.Millisecond))
			r.all(radio.RoleServer)
		}, mark: "rule host: programs of the server were ready and did not run for 7.5 % of the attempt (90ms), at most 5 % are allowed"},
		"host: within": {rules: hostRule, tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, late(during, 40*time.Millisecond))
			r.all(radio.RoleRelay)
		}},
		"host: later": {rules: hostRule, tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, late(after, 90*time.Millisecond))
			r.all(radio.RoleRelay)
		}},
		"host: not watched for a while": {rules: hostRule, tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, func(w *journal.Watched) { w.Until, w.Host = w.Since.Add(during), &journal.HostWatched{} })
			r.watched(radio.RoleRelay, func(w *journal.Watched) { w.Since, w.Host = w.Since.Add(after), &journal.HostWatched{} })
			r.all(radio.RoleRelay)
		}, undecided: "rule host: the relay was not watched from 12:00:10.5 UTC to 12:00:11."},
		"traffic: no more": {rules: share, tell: func(r *watchedRun) { r.watched(radio.RoleServer, other(during, 50)); r.all(radio.RoleServer) }},
		"traffic: a size":  {rules: size, tell: func(r *watchedRun) { r.watched(radio.RoleClient, other(during, 20480)); r.all(radio.RoleClient) }, mark: "rule interfering: 20.0 KiB of other traffic, mostly UDP 10.77.0.1:7 → 10.77.0.3:9 passed the radio's interface of the client, at most 2 KiB are allowed"},
		"traffic: later":   {rules: size, tell: func(r *watchedRun) { r.watched(radio.RoleClient, other(after, 20480)); r.all(radio.RoleClient) }},
		"traffic: unwatched": {rules: size, tell: func(r *watchedRun) {
			r.watched(radio.RoleClient, func(w *journal.Watched) { w.Unwatched = "no right" })
			r.all(radio.RoleClient)
		}, undecided: "rule interfering: the client: no right"},
		"air: its own": {tell: func(r *watchedRun) {
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, Received: 1 << 20}))
			r.all(radio.RoleServer)
		}},
		"air: a little of it": {tell: func(r *watchedRun) {
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5002, After: during, Length: 100 * time.Millisecond, Sent: 6000}))
			r.all(radio.RoleServer)
		}},
		"air: a hundredth of the attempt": {tell: func(r *watchedRun) {
			r.watched(radio.RoleClient, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, Received: 1 << 20}))
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5002, After: during, Length: 100 * time.Millisecond, Sent: 10000}))
			r.all(radio.RoleServer, radio.RoleClient)
		}},
		"air: before it": {tell: func(r *watchedRun) {
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5002, After: 8 * time.Second, Length: 2100 * time.Millisecond, Sent: 1 << 20}))
			r.all(radio.RoleServer)
		}},
		"air: all the time": {tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, spans(journal.PortSpan{Port: 5998, After: 0, Length: 20 * time.Second, Received: 1 << 20}))
			r.all(radio.RoleRelay)
		}, mark: "foreign-traffic: 40.8 KiB of packets that are not the attempt's passed the radio's interface of the relay, beside 0 B of the attempt; most, 40.8 KiB, came to it at port 5998, which no listener of the run has"},
		"air: nobody knows when": {tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, spans(journal.PortSpan{Port: 5998, After: 9 * time.Second, Length: 1500 * time.Millisecond, Received: 1 << 20, Coarse: true}))
			r.all(radio.RoleRelay)
		}},
		"air: within it, nobody knows when": {tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, spans(journal.PortSpan{Port: 5998, After: during, Length: 300 * time.Millisecond, Received: 20480, Coarse: true}))
			r.all(radio.RoleRelay)
		}, mark: "foreign-traffic: 20.0 KiB of packets that are not the attempt's passed the radio's interface of the relay, beside 0 B of the attempt; most, 20.0 KiB, came to it at port 5998, which no listener of the run has"},
		"air: no port": {tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, func(w *journal.Watched) { other(during, 20480)(w); spans()(w) })
			r.all(radio.RoleRelay)
		}, mark: "foreign-traffic: 20.0 KiB of packets that are not the attempt's passed the radio's interface of the relay, beside 0 B of the attempt; most, 20.0 KiB, had no listener's port, mostly UDP 10.77.0.1:7 → 10.77.0.3:9"},
		"air: no port, with a rule": {rules: runsheet.Valid{Interfering: &runsheet.Interfering{Bytes: 1 << 20}}, tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, func(w *journal.Watched) { other(during, 20480)(w); spans()(w) })
			r.all(radio.RoleRelay)
		}},
		"air: not known": {tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, func(w *journal.Watched) { w.Listeners = &journal.ListenerTraffic{Unknown: "no right"} })
			r.all(radio.RoleRelay)
		}, undecided: "foreign-traffic: the relay: no right"},
		"repaired: too few": {tell: func(r *watchedRun) {
			r.watched(radio.RoleClient, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, Sent: 300e3, SentPayload: 200e3}))
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, Received: 200e3, ReceivedPayload: 130e3}))
			r.all(radio.RoleClient, radio.RoleServer)
		}, driver: true, mark: "fewer-than-lost: the driver reports 3 packets sent again; 60000 bytes of payload left the radio of the client and did not arrive at that of the server, at least 40 packets, and all payload arrived"},
		"repaired: enough": {tell: func(r *watchedRun) {
			r.watched(radio.RoleClient, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, Sent: 300e3, SentPayload: 200e3}))
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, Received: 200e3, ReceivedPayload: 145e3}))
			r.all(radio.RoleClient, radio.RoleServer)
		}},
		"repaired: of the attempt before": {tell: func(r *watchedRun) {
			r.watched(radio.RoleClient, spans(journal.PortSpan{Port: 5001, After: 8 * time.Second, Length: 2 * time.Second, SentPayload: 200e3}))
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5001, After: 8 * time.Second, Length: 2 * time.Second, ReceivedPayload: 100e3}))
			r.all(radio.RoleClient, radio.RoleServer)
		}},
		"repaired: faster than the attempt before": {tell: func(r *watchedRun) {
			r.watched(radio.RoleClient, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, SentPayload: 200e3}))
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5001, After: 8 * time.Second, Length: 3 * time.Second, ReceivedPayload: 300e3}))
			r.all(radio.RoleClient, radio.RoleServer)
		}},
		"repaired: what arrives later": {tell: func(r *watchedRun) {
			r.watched(radio.RoleClient, spans(journal.PortSpan{Port: 5001, After: during, Length: 500 * time.Millisecond, SentPayload: 200e3}))
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5001, After: 11200 * time.Millisecond, Length: 100 * time.Millisecond, ReceivedPayload: 200e3}))
			r.all(radio.RoleClient, radio.RoleServer)
		}},
		"repaired: not known": {tell: func(r *watchedRun) {
			r.watched(radio.RoleClient, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, SentPayload: 200e3}))
			r.watched(radio.RoleServer, func(w *journal.Watched) { w.Listeners = &journal.ListenerTraffic{Unknown: "no right"} })
			r.all(radio.RoleClient, radio.RoleServer)
		}, undecided: "foreign-traffic: the server: no right"},
		"air: not told": {tell: func(r *watchedRun) {
			r.watched(radio.RoleRelay, spans())
			r.all(radio.RoleRelay, radio.RoleServer)
		}, waits: true},
	} {
		for _, succeeded := range []bool{true, false} {
			had, kind := " (the attempt had succeeded)", "success"
			if !succeeded {
				had, kind = " (the attempt had ended with reset)", "failure"
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				r := &watchedRun{nodes: map[radio.Role]*Node{}, clock: map[radio.Role]Clock{}}
				run, a := &Run{Sheet: sheet()}, attempt(succeeded)
				run.Sheet.Valid = &c.rules
				for _, role := range radio.Roles {
					r.nodes[role], r.clock[role] = &Node{Role: role}, ahead
					run.Nodes = append(run.Nodes, r.nodes[role])
				}
				c.tell(r)
				if again := int64(3); succeeded {
					a.Carried.Samples = map[int]*contract.Sample{0: {Retransmits: &again}}
				}
				require.Equal(t, c.waits, !run.Complete(&a))
				mark, undecided := run.Validity(&a)
				require.Contains(t, undecided, c.undecided)
				require.Equal(t, c.undecided == "", undecided == "", undecided)
				if c.mark == "" || c.driver && !succeeded {
					require.Nil(t, mark)
					return
				}
				require.Equal(t, &Mark{0, 1, c.mark + had, !c.driver}, mark)
			})
		}
	}
}

// Readings and positions count at the node of a role and of the kind of source that a rule
// is about.
func TestReadings(t *testing.T) {
	least := 10.0
	run := &Run{Sheet: sheet(), Nodes: []*Node{{Role: radio.RoleClient}}}
	run.Sheet.Valid = &runsheet.Valid{Readings: []runsheet.ReadingLimit{{Rule: runsheet.RuleTelemetry, Reading: "snr", Unit: "dB", Min: &least}}, PositionMetres: 25}
	require.Equal(t, []string{"snr", runsheet.ReadingLatitude}, run.Readings())
	a := attempt(true)
	read := func(kind telemetrysource.Kind, lowest float64) report.Telemetry {
		return report.Telemetry{Role: string(radio.RoleClient), Source: "modem", Kind: string(kind), Metric: "snr", Unit: "dB", Minimum: lowest, Maximum: 30}
	}
	a.Readings, a.Moves = []report.Telemetry{read(telemetrysource.KindHTTP, 9.5)}, []Move{{radio.RoleClient, 20}}
	mark, undecided := run.Validity(&a)
	require.Equal(t, "rule telemetry: reading snr of modem at the client was 9.5 dB, at least 10 dB is allowed (the attempt had succeeded)", mark.Reason)
	require.Empty(t, undecided)
	a.Readings, a.Moves = []report.Telemetry{read(telemetrysource.KindHost, 9.5)}, []Move{{radio.RoleServer, 30}}
	mark, undecided = run.Validity(&a)
	require.Nil(t, mark)
	require.Equal(t, "rule telemetry: no reading of snr at the client during the attempt\nrule position: no position of the client during the attempt", undecided)
}

// An attempt waits for the sources that are to be read after it.
func TestSourcesAreAwaited(t *testing.T) {
	run, a := &Run{Sheet: sheet()}, attempt(true)
	run.Sheet.Valid = &runsheet.Valid{PositionMetres: 25}
	before, late := a.from(), a.to().Add(readingsLate+time.Millisecond)
	for name, c := range map[string]struct {
		source   Source
		newest   time.Time
		complete bool
	}{
		"not read since":       {Source{At: before}, a.to(), false},
		"not read for long":    {Source{At: before}, late, true},
		"read since":           {Source{At: a.to()}, a.to(), true},
		"cannot be read since": {Source{At: before, Failed: true}, a.to(), true},
	} {
		run.Nodes = []*Node{{Role: radio.RoleRelay, Sources: []Source{c.source}, Newest: c.newest}}
		require.Equal(t, c.complete, run.Complete(&a), name)
	}
}

// What an attempt is to carry is its flows' size; of flows that a time ends, and of probes
// alone, what they carried.
func TestCarried(t *testing.T) {
	run, a := &Run{Sheet: sheet()}, attempt(false)
	a.Carried = Carried{Delivered: map[int]int64{0: 7, 1: 300}, Probed: 44}
	trial := &run.Sheet.Trials[0]
	require.EqualValues(t, 1000, run.carried(&a))
	trial.Flows = append(trial.Flows, runsheet.Flow{Duration: time.Second})
	require.EqualValues(t, 1300, run.carried(&a))
	trial.Flows = nil
	require.EqualValues(t, 44, run.carried(&a))
}
