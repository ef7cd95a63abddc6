package campaign

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/runcommand"
	"linktrial/internal/telemetrysource"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// validRun is a run whose first attempt began after 10 s by the orchestrator's clock
// and took 1.2 s; each node tells what its journal has of the time around it.
type validRun struct {
	begin   time.Time // of the journals, by the nodes' clocks
	nodes   map[radio.Role]*storetest.Journal
	verdict journal.Verdict
	sheet   *runsheet.Sheet
}

// watched adds a record of 20 s of the run, in which the attempt lies.
func (r *validRun) watched(role radio.Role, change func(*journal.Watched)) {
	w := journal.Watched{Since: r.begin, Until: r.begin.Add(20 * time.Second)}
	if change != nil {
		change(&w)
	}
	r.nodes[role].Add(journal.TypeWatched, w)
}

// step has a node's clock step: its journal tells it before what was watched.
func (r *validRun) step(role radio.Role, by time.Duration) {
	r.nodes[role].Add(journal.TypeClockStepped, journal.ClockStepped{By: by})
}

func (r *validRun) all(rest ...radio.Role) {
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

// read adds one reading to every node's journal, after a time of the run.
func (r *validRun) read(after time.Duration, kind telemetrysource.Kind, value map[radio.Role]float64, name, unit string) {
	for role, j := range r.nodes {
		v, there := value[role]
		if !there {
			continue
		}
		back := time.Duration(0)
		j.Pass(after)
		j.Add(journal.TypeTelemetry, journal.Telemetry{Source: "source", Kind: kind, Values: []journal.Reading{{Name: name, Value: v, Unit: unit}}})
		j.Pass(-after - 10*time.Millisecond + back)
	}
}

func (r *validRun) place(after time.Duration, lat, lon float64) {
	for _, j := range r.nodes {
		j.Pass(after)
		j.Add(journal.TypeTelemetry, journal.Telemetry{Source: "gps", Kind: telemetrysource.KindGPSD, Values: []journal.Reading{{Name: "latitude", Value: lat, Unit: "°"}, {Name: "longitude", Value: lon, Unit: "°"}}})
		j.Pass(-after - 10*time.Millisecond)
	}
}

func everywhere(x float64) map[radio.Role]float64 {
	return map[radio.Role]float64{radio.RoleClient: x, radio.RoleRelay: x, radio.RoleServer: x}
}

func other(after time.Duration, bytes int64) func(*journal.Watched) {
	return func(w *journal.Watched) {
		w.Other = &journal.OtherTraffic{Packets: 3, Bytes: []journal.BytesAt{{After: after, Bytes: bytes}}, Most: []journal.Conversation{{What: "UDP 10.77.0.1:7 → 10.77.0.3:9", Bytes: bytes}}}
	}
}

func spans(all ...journal.PortSpan) func(*journal.Watched) {
	return func(w *journal.Watched) { w.Listeners = &journal.ListenerTraffic{Spans: all} }
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
	least, most := 10.0, 85.0
	clockRule := runsheet.Valid{ClockStep: 100 * time.Millisecond}
	share := runsheet.Valid{Interfering: &runsheet.Interfering{Share: 0.05}} // of 1000 bytes
	snr := runsheet.Valid{Readings: []runsheet.ReadingLimit{{Rule: runsheet.RuleTelemetry, Reading: "snr", Unit: "dB", Min: &least}}}
	heat := runsheet.Valid{Readings: []runsheet.ReadingLimit{{Rule: runsheet.RuleTemperature, Reading: "temperature", Unit: "°C", Max: &most}}}
	battery := runsheet.Valid{Readings: []runsheet.ReadingLimit{{Rule: runsheet.RuleBattery, Reading: "charge", Unit: "%", Min: &least}}}
	position := runsheet.Valid{PositionMetres: 25}
	s, n := storetest.Open(t), 0
	const during, after = 10500 * time.Millisecond, 12 * time.Second
	for name, c := range map[string]struct {
		rules     runsheet.Valid
		tell      func(r *validRun)
		mark      string // empty: none
		undecided string // contained in it; empty: nothing is undecided
		waits     bool   // it is not decided before the run's end
		driver    bool   // the mark is for a value of the driver: of successes alone, and not repeated
	}{
		"clock: not told": {rules: clockRule, tell: func(r *validRun) { r.all(radio.RoleRelay) }, waits: true, undecided: "rule clock_step: the relay was not watched from 12:00:10.0 UTC to 12:00:11."},
		"clock: before, by a year": {rules: clockRule, tell: func(r *validRun) {
			r.step(radio.RoleRelay, year)
			r.watched(radio.RoleRelay, stepped(year, 5*time.Second))
			r.watched(radio.RoleRelay, func(w *journal.Watched) { w.Since, w.Until = w.Since.Add(5*time.Second+year), w.Until.Add(year) })
			r.all(radio.RoleRelay)
		}},
		"traffic: a share": {rules: share, tell: func(r *validRun) { r.watched(radio.RoleServer, other(during, 51)); r.all(radio.RoleServer) }, mark: "rule interfering: 51 B of other traffic, mostly UDP 10.77.0.1:7 → 10.77.0.3:9 passed the radio's interface of the server, at most 50 B are allowed (5 % of 1000 B)"},
		"air: another listener": {tell: func(r *validRun) {
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, Received: 1100}, journal.PortSpan{Port: 5002, After: during, Length: 100 * time.Millisecond, Sent: 6001}))
			r.all(radio.RoleServer)
		}, mark: "foreign-traffic: 6001 B of packets that are not the attempt's passed the radio's interface of the server, beside 1100 B of the attempt; most, 6001 B, left it at port 5002, that of a listener of treatment two (driver test)"},
		"repaired: too few": {tell: func(r *validRun) {
			r.watched(radio.RoleClient, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, Sent: 300e3, SentPayload: 200e3}))
			r.watched(radio.RoleServer, spans(journal.PortSpan{Port: 5001, After: 10 * time.Second, Length: time.Second, Received: 200e3, ReceivedPayload: 130e3}))
			r.all(radio.RoleClient, radio.RoleServer)
		}, driver: true, mark: "fewer-than-lost: the driver reports 3 packets sent again; 60000 bytes of payload left the radio of the client and did not arrive at that of the server, at least 40 packets, and all payload arrived"},
		"snr: good": {rules: snr, tell: func(r *validRun) {
			r.read(5*time.Second, telemetrysource.KindHTTP, everywhere(3), "snr", "dB")
			r.read(during, telemetrysource.KindHTTP, everywhere(10), "snr", "dB")
			r.read(after, telemetrysource.KindHTTP, everywhere(4), "snr", "dB")
		}},
		"snr: bad": {rules: snr, tell: func(r *validRun) {
			r.read(during, telemetrysource.KindHTTP, everywhere(9.5), "snr", "dB")
			r.read(after, telemetrysource.KindHTTP, everywhere(40), "snr", "dB")
		}, mark: "rule telemetry: reading snr of source at the client was 9.5 dB, at least 10 dB is allowed"},
		"snr: before, after": {rules: snr, tell: func(r *validRun) {
			r.read(9*time.Second, telemetrysource.KindSNMP, everywhere(20), "snr", "dB")
			r.read(after, telemetrysource.KindSNMP, everywhere(2), "snr", "dB")
		}, mark: "rule telemetry: reading snr of source at the client was 2 dB, at least 10 dB is allowed"},
		"snr: not yet": {rules: snr, tell: func(r *validRun) { r.read(9*time.Second, telemetrysource.KindSNMP, everywhere(20), "snr", "dB") }, waits: true},
		"snr: none":    {rules: snr, tell: func(r *validRun) { r.read(after, telemetrysource.KindHTTP, everywhere(20), "queue", "B") }, undecided: "rule telemetry: no reading of snr at the relay during the attempt"},
		"temperature: hot": {rules: heat, tell: func(r *validRun) {
			r.read(during, telemetrysource.KindHost, everywhere(91), "temperature", "°C")
			r.read(after, telemetrysource.KindHost, everywhere(40), "temperature", "°C")
		}, mark: "rule temperature: reading temperature of source at the client was 91 °C, at most 85 °C is allowed"},
		"temperature: radio's": {rules: heat, tell: func(r *validRun) {
			r.read(during, telemetrysource.KindSNMP, everywhere(91), "temperature", "°C")
			r.read(after, telemetrysource.KindSNMP, everywhere(91), "temperature", "°C")
		}, undecided: "no reading of temperature"},
		"battery: empty": {rules: battery, tell: func(r *validRun) {
			r.read(during, telemetrysource.KindHost, map[radio.Role]float64{radio.RoleClient: 80, radio.RoleRelay: 80, radio.RoleServer: 9}, "charge", "%")
			r.read(after, telemetrysource.KindHost, everywhere(90), "charge", "%")
		}, mark: "rule battery: reading charge of source at the server was 9 %, at least 10 % is allowed"},
		"position: moved":    {rules: position, tell: func(r *validRun) { r.place(time.Second, 47, 8); r.place(during, 47.0003, 8); r.place(after, 47, 8) }, mark: "rule position: the client was 33.4 m from where it was when the run began, at most 25 m are allowed"},
		"position: a little": {rules: position, tell: func(r *validRun) { r.place(time.Second, 47, 8); r.place(during, 47.0002, 8); r.place(after, 47.1, 8) }},
		"position: none":     {rules: position, tell: func(r *validRun) { r.read(after, telemetrysource.KindHost, everywhere(90), "charge", "%") }, undecided: "rule position: no position of the client during the attempt"},
	} {
		for _, verdict := range []journal.Verdict{journal.Succeeded, journal.Failed} {
			t.Run(name+", "+string(verdict), func(t *testing.T) {
				n++
				r := &validRun{sheet: storetest.Sheet(2), nodes: map[radio.Role]*storetest.Journal{}, verdict: verdict,
					begin: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
				r.sheet.Valid = &c.rules
				run := storetest.AddRun(t, s, fmt.Sprintf("validity%d", n), r.sheet)
				for _, role := range radio.Roles {
					r.nodes[role] = storetest.NewJournal(run, role)
					r.nodes[role].Begin(r.sheet)
				}
				r.nodes[radio.RoleServer].Listen(r.sheet)
				c.tell(r)
				client := r.nodes[radio.RoleClient]
				client.Pass(10 * time.Second)
				client.Start(r.sheet, 0, 1)
				client.End(r.sheet, 0, 1, verdict)
				client.EndTrial(0, 1, verdict)
				for _, role := range radio.Roles {
					deliver(t, s, run, r.nodes[role])
				}
				require.NoError(t, s.InTx(t.Context(), func(tx store.Conn) error {
					q := campaigndb.New(tx)
					_, err := q.SetRunning(t.Context(), run)
					return err
				}))
				e := newEngine(Config{Store: s})
				require.NoError(t, e.judgeValidity(t.Context(), openRun(t, e, run), false))
				left, err := campaigndb.New(s).UnjudgedAttempts(t.Context(), campaigndb.UnjudgedAttemptsParams{RunID: run, Self: journal.Self})
				require.NoError(t, err)
				require.Equal(t, c.waits, len(left) > 0)
				require.NoError(t, e.judgeValidity(t.Context(), openRun(t, e, run), true))
				require.NoError(t, e.judgeValidity(t.Context(), openRun(t, e, run), true))

				got, _, err := s.Run(t.Context(), run)
				require.NoError(t, err)
				a := got.Trials[0].Attempts[0]
				require.Contains(t, strings.Join(a.Undecided, "\n"), c.undecided)
				require.Equal(t, c.undecided == "", len(a.Undecided) == 0, a.Undecided)
				commands, err := campaigndb.New(s).CommandStates(t.Context(), run)
				require.NoError(t, err)
				if c.mark == "" || c.driver && verdict == journal.Failed {
					require.Nil(t, a.Mark)
					require.Empty(t, commands)
					return
				}
				had := " (the attempt had succeeded)"
				if verdict == journal.Failed {
					had = " (the attempt had ended with reset)"
				}
				require.NotNil(t, a.Mark)
				require.Equal(t, c.mark+had, a.Mark.Reason)
				require.Equal(t, journal.Self, a.Mark.By)
				require.Equal(t, journal.Invalid, a.Verdict)
				if c.driver {
					require.Empty(t, commands)
				} else {
					require.Len(t, commands, 1)
					require.Equal(t, runcommand.Repeat, commands[0].Kind)
				}
				// A person withdraws the mark, and it is not set again.
				require.NoError(t, e.MarkAttempt(t.Context(), run, Mark{Trial: 0, Attempt: 1, By: "ada"}))
				require.NoError(t, e.judgeValidity(t.Context(), openRun(t, e, run), true))
				got, _, err = s.Run(t.Context(), run)
				require.NoError(t, err)
				require.Nil(t, got.Trials[0].Attempts[0].Mark)
			})
		}
	}
}
