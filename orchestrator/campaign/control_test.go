package campaign

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// An attempt of a run with in-band control has the control packets of every node; one
// that met some at another node than the leading one is marked, and its trial repeated.
// What a node did not count is said, and nothing is decided before its count is there.
func TestControlTraffic(t *testing.T) {
	at := func(s float64) time.Time {
		return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
	}
	forwarded := func(from, to float64, packets int64) journal.ControlCounted {
		return journal.ControlCounted{Since: at(from), Until: at(to), ControlTraffic: journal.ControlTraffic{Packets: packets, Bytes: 52 * packets, Others: packets, OthersBytes: 52 * packets}}
	}
	silent := report.ControlCount{Role: radio.RoleServer}
	counted := func(from, to float64, packets int64) journal.ControlCounted {
		return journal.ControlCounted{Since: at(from), Until: at(to), ControlTraffic: journal.ControlTraffic{Packets: packets, Bytes: 52 * packets}}
	}
	// The attempt begins 10 s after the run and takes 1.2 s.
	for name, c := range map[string]struct {
		server  []journal.ControlCounted
		relay   []journal.ControlCounted // empty: silent
		waits   bool                     // for the server's count, until the run ends
		ended   bool                     // the relay's part, after that
		want    report.ControlCount      // of the server
		passed  report.ControlCount      // at the relay
		mark    string
		outside bool          // control is out-of-band
		step    time.Duration // of the server's clock, before it counted
	}{
		"out-of-band": {server: []journal.ControlCounted{counted(0, 20, 9)}, outside: true},
		"some":        {server: []journal.ControlCounted{counted(0, 10.5, 0), counted(10.5, 10.7, 2), counted(10.7, 20, 0)}, want: report.ControlCount{Role: radio.RoleServer, Packets: 2, Bytes: 104}, mark: "2 control packets with 104 B passed at the server, of which an attempt with in-band control has none (the attempt had ended with a result)"},
		"some, by a clock that is a year back": {server: []journal.ControlCounted{counted(0, 10.5, 0), counted(10.5, 10.7, 2), counted(10.7, 20, 0)}, step: -year,
			want: report.ControlCount{Role: radio.RoleServer, Packets: 2, Bytes: 104}, mark: "2 control packets with 104 B passed at the server, of which an attempt with in-band control has none (the attempt had ended with a result)"},
		"forwarded": {server: []journal.ControlCounted{counted(0, 20, 0)}, relay: []journal.ControlCounted{counted(0, 10.5, 0), forwarded(10.5, 10.6, 4), counted(10.6, 20, 0)}, want: silent,
			passed: report.ControlCount{Packets: 4, Bytes: 208}, mark: "4 control packets with 208 B passed at the relay, of which an attempt with in-band control has none (the attempt had ended with a result)"},
		"a relay that cannot tell": {server: []journal.ControlCounted{counted(0, 20, 0)}, relay: []journal.ControlCounted{counted(0, 2, 7)}, ended: true, want: silent,
			passed: report.ControlCount{Unknown: "the relay was not observed: its node forwards no packets and cannot tell when trials run, so its part in the run ended with its preparation"}},
		"a relay that was away": {server: []journal.ControlCounted{counted(0, 20, 0)}, relay: []journal.ControlCounted{counted(0, 2, 7)}, waits: true, want: silent,
			passed: report.ControlCount{Unknown: "the node did not count from 12:00:10.0 UTC on, or its journal is not there"}},
		"not to the end": {server: []journal.ControlCounted{counted(0, 10.5, 0)}, waits: true, want: report.ControlCount{Role: radio.RoleServer, Unknown: "the node did not count from 12:00:10.5 UTC on, or its journal is not there"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.Open(t)
			sheet := storetest.Sheet(2)
			if sheet.Control = runsheet.ControlInBand; c.outside {
				sheet.Control = runsheet.ControlOutOfBand
			}
			run := storetest.AddRun(t, s, "control", sheet)
			server := storetest.NewJournal(run, radio.RoleServer)
			server.Begin(sheet)
			server.Listen(sheet)
			if c.step != 0 {
				server.Step(c.step)
			}
			for _, x := range c.server {
				x.Since, x.Until = x.Since.Add(c.step), x.Until.Add(c.step)
				server.Add(journal.TypeControlCounted, x)
			}
			client := storetest.NewJournal(run, radio.RoleClient)
			client.Begin(sheet)
			client.Pass(10 * time.Second)
			client.Start(sheet, 0, 1)
			client.End(sheet, 0, 1, journal.Succeeded)
			client.EndTrial(0, 1, journal.Succeeded)
			deliver(t, s, run, client)
			require.NoError(t, s.InTx(t.Context(), func(tx store.Conn) error {
				q := campaigndb.New(tx)
				_, err := q.SetRunning(t.Context(), run)
				return err
			}))
			e := newEngine(Config{Store: s})
			relay := storetest.NewJournal(run, radio.RoleRelay)
			relay.Begin(sheet)
			if c.relay == nil {
				c.relay = []journal.ControlCounted{counted(0, 2, 7), counted(2, 20, 0)}
			}
			for _, x := range c.relay {
				relay.Add(journal.TypeControlCounted, x)
			}
			if c.ended {
				relay.Add(journal.TypeRunEnded, journal.RunEnded{End: journal.RunCompleted})
			}
			deliver(t, s, run, relay)
			deliver(t, s, run, server)
			attempt := func(last bool) *report.Attempt {
				require.NoError(t, e.judgeControl(t.Context(), openRun(t, e, run), last))
				r, _, err := s.Run(t.Context(), run)
				require.NoError(t, err)
				return &r.Trials[0].Attempts[0]
			}
			a := attempt(false)
			if c.outside {
				require.Empty(t, attempt(true).Control)
				return
			}
			if c.waits {
				require.Empty(t, a.Control)
				a = attempt(true)
			}
			c.passed.Role = radio.RoleRelay
			require.Equal(t, []report.ControlCount{{Role: radio.RoleClient, Unknown: "the node's agent could not count them (its log says why)"}, c.passed, c.want}, a.Control)
			commands, err := campaigndb.New(s).CommandStates(t.Context(), run)
			require.NoError(t, err)
			if c.mark == "" {
				require.Nil(t, a.Mark)
				require.Empty(t, commands)
				return
			}
			require.Equal(t, c.mark, a.Mark.Reason)
			require.Len(t, commands, 1)
			require.NoError(t, e.MarkAttempt(t.Context(), run, Mark{Trial: 0, Attempt: 1, By: "ada"}))
			require.Nil(t, attempt(true).Mark)
		})
	}
}
