package campaign

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/runcommand"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

const year = 365 * 24 * time.Hour

func deliver(t *testing.T, s *store.Store, run string, j *storetest.Journal) {
	t.Helper()
	var records []ingest.Record
	for i, r := range j.Records {
		records = append(records, ingest.Record{Seq: int64(i + 1), JSON: r})
	}
	_, err := ingest.New(ingest.Config{Store: s}).Deliver(t.Context(), run, string(j.Role), records)
	require.NoError(t, err)
}

// openRun is a run of the store, as the steps of an ended attempt get it.
func openRun(t *testing.T, e *Engine, id string) *run {
	t.Helper()
	o, err := e.cfg.Store.RunOverview(t.Context(), id)
	require.NoError(t, err)
	info, err := e.sheetOf(t.Context(), id, o.SheetHash)
	require.NoError(t, err)
	return &run{id: id, sheetInfo: info}
}

// An attempt that failed while its listener was not in order is marked, and its trial
// is repeated; one that failed at another time, or because of its driver, is neither,
// and nor is one whose mark a person has withdrawn.
func TestOutages(t *testing.T) {
	const start = 10 * time.Second
	encoded, err := storetest.Sheet(2).Encode()
	require.NoError(t, err)
	hash := runsheet.Hash(encoded)
	listener := func(treatment string, outside bool) journal.Listener {
		return journal.Listener{Treatment: treatment, Code: "internal", Message: "gone", Outside: outside}
	}
	for name, c := range map[string]struct {
		server func(j *storetest.Journal) // after 10 s of the run; the attempt begins there and takes 1.2 s
		mark   string                     // empty: none
		well   bool                       // the transfer succeeds
	}{
		"ended from outside": {func(j *storetest.Journal) {
			j.Pass(500 * time.Millisecond)
			j.Add(journal.TypeListenerFailed, listener("one", true))
			j.Pass(time.Second)
			j.Add(journal.TypeListenerReady, listener("one", false))
		}, "the listener of one at the server was ended from outside at 12:00:10.5 UTC (the attempt had ended with reset)", false},
		"its driver refused": {func(j *storetest.Journal) {
			l := listener("one", false)
			l.Code, l.Message = contract.CodeBadParameters, "local.address"
			j.Add(journal.TypeListenerFailed, l)
		}, "the listener of one at the server refused its parameters at 12:00:10.0 UTC: local.address (the attempt had ended with reset)", false},
		"stopped, and it goes on": {func(j *storetest.Journal) {
			j.Pass(500 * time.Millisecond)
			l := listener("one", true)
			l.Stopped = true
			j.Add(journal.TypeListenerFailed, l)
			j.Pass(200 * time.Millisecond)
			j.Add(journal.TypeListenerReady, listener("one", false))
		}, "the listener of one at the server was stopped from outside at 12:00:10.5 UTC (the attempt had ended with a result)", true},
		"ended from outside after a success, which the server may yet confirm": {func(j *storetest.Journal) {
			j.Pass(500 * time.Millisecond)
			j.Add(journal.TypeListenerFailed, listener("one", true))
		}, "", true},
		"ended from outside after a success, as the server confirms": {func(j *storetest.Journal) {
			j.Received("one", 0, 1)
			j.Pass(500 * time.Millisecond)
			j.Add(journal.TypeListenerFailed, listener("one", true))
			j.Pass(5 * time.Second)
			j.Add(journal.TypeListenerReady, listener("one", false))
		}, "", true},
		"agent away, while its listener received all": {func(j *storetest.Journal) {
			j.Pass(5 * time.Second)
			j.Add(journal.TypeRunResumed, journal.RunStarted{SheetHash: hash, Alive: time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)})
			j.Add(journal.TypeListenerReady, listener("one", false))
		}, "the agent of the server was not running from 12:00:10.0 UTC to 12:00:15.0 UTC (the attempt had ended with a result that the server did not record)", true},
		"agent away, and the server's part has ended": {func(j *storetest.Journal) {
			j.Pass(1100 * time.Millisecond)
			j.Add(journal.TypeRunResumed, journal.RunStarted{SheetHash: hash, Alive: time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)})
			j.Add(journal.TypeListenerReady, listener("one", false))
			j.Finish(journal.RunCompleted, "")
		}, "the agent of the server was not running from 12:00:10.0 UTC to 12:00:11.1 UTC (the attempt had ended with a result that the server did not record)", true},
		// The listener had answered, and was ended before it had said so.
		"ended from outside after a success, of which the server reports its end": {func(j *storetest.Journal) {
			j.Pass(1100 * time.Millisecond)
			j.Add(journal.TypeReceived, journal.Received{Treatment: "one", Transfer: runsheet.TransferID(j.Run, 0, 1, 0).String(), Code: contract.CodeAborted, Message: "asked to end"})
			j.Add(journal.TypeListenerFailed, listener("one", true))
			j.Pass(5 * time.Second)
			j.Add(journal.TypeListenerReady, listener("one", false))
			j.Finish(journal.RunCompleted, "")
		}, "the listener of one at the server was ended from outside at 12:00:11.1 UTC (the attempt had ended with a result that the server did not record)", true},
		// The server's clock stepped before, and its agent was killed and started again: the
		// times of its journal have nothing to do with those of the leading node's.
		"ended from outside, a year ahead": {func(j *storetest.Journal) {
			j.Pass(500 * time.Millisecond)
			j.Step(year)
			j.Pass(-10 * time.Millisecond)
			j.Add(journal.TypeListenerFailed, listener("one", true))
			j.Pass(time.Second)
			j.Add(journal.TypeListenerReady, listener("one", false))
		}, "the listener of one at the server was ended from outside at 12:00:10.5 UTC (the attempt had ended with reset)", false},
		"before, an hour back": {func(j *storetest.Journal) {
			j.Pass(-5 * time.Second)
			j.Step(-time.Hour)
			j.Add(journal.TypeListenerFailed, listener("one", true))
			j.Add(journal.TypeListenerReady, listener("one", false))
			j.Step(time.Hour)
		}, "", false},
		"agent away, and its clock a year back since": {func(j *storetest.Journal) {
			j.Pass(3 * time.Second)
			j.Step(-year)
			j.Add(journal.TypeRunResumed, journal.RunStarted{SheetHash: hash})
		}, "the agent of the server was not running from 12:00:00.0 UTC to 12:00:13.0 UTC (the attempt had ended with reset)", false},
		"agent away later, as it knows by another clock": {func(j *storetest.Journal) {
			j.Pass(9 * time.Second)
			j.Step(year)
			j.Add(journal.TypeRunResumed, journal.RunStarted{SheetHash: hash, Alive: time.Date(2026, 3, 1, 12, 0, 16, 0, time.UTC).Add(year)})
		}, "", false},
		"agent stopped, a year ahead": {func(j *storetest.Journal) {
			j.Pass(3 * time.Second)
			j.Step(year)
			j.Add(journal.TypeAgentStopped, journal.AgentStopped{From: time.Date(2026, 3, 1, 12, 0, 11, 0, time.UTC).Add(year), To: time.Date(2026, 3, 1, 12, 0, 13, 0, time.UTC).Add(year)})
		}, "the agent of the server did not run from 12:00:11.0 UTC to 12:00:13.0 UTC (the attempt had ended with a result)", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.Open(t)
			sheet := storetest.Sheet(2)
			run := storetest.AddRun(t, s, "outages", sheet)
			server := storetest.NewJournal(run, radio.RoleServer)
			server.Begin(sheet)
			server.Listen(sheet)
			server.Pass(start)
			c.server(server)
			client := storetest.NewJournal(run, radio.RoleClient)
			client.Begin(sheet)
			client.Pass(start)
			if strings.Contains(name, "year") { // the leading node's clock is wrong, too
				client.Step(-time.Hour)
				client.Pass(-10 * time.Millisecond)
			}
			client.Start(sheet, 0, 1)
			verdict := journal.Failed
			if c.well {
				verdict = journal.Succeeded
			}
			client.End(sheet, 0, 1, verdict)
			deliver(t, s, run, server)
			deliver(t, s, run, client)
			require.NoError(t, s.InTx(t.Context(), func(tx store.Conn) error {
				q := campaigndb.New(tx)
				_, err := q.SetRunning(t.Context(), run)
				return err
			}))
			e := newEngine(Config{Store: s})
			// Nothing is decided before it is known whether the trial goes on by itself:
			// a marked attempt would not be looked at again, and the trial not be repeated.
			require.NoError(t, e.judgeOutages(t.Context(), openRun(t, e, run), false))
			open, _, err := s.Run(t.Context(), run)
			require.NoError(t, err)
			require.Nil(t, open.Trials[0].Attempts[0].Mark)
			client.EndTrial(0, 1, verdict)
			deliver(t, s, run, client)
			for range 2 { // what is decided stays
				require.NoError(t, e.judgeOutages(t.Context(), openRun(t, e, run), false))
			}
			r, _, err := s.Run(t.Context(), run)
			require.NoError(t, err)
			a := r.Trials[0].Attempts[0]
			commands, err := campaigndb.New(s).CommandStates(t.Context(), run)
			require.NoError(t, err)
			if c.mark == "" {
				require.Nil(t, a.Mark)
				require.Equal(t, verdict, a.Verdict)
				require.Empty(t, commands)
				return
			}
			require.NotNil(t, a.Mark)
			require.Equal(t, c.mark, a.Mark.Reason)
			require.Equal(t, journal.Self, a.Mark.By)
			require.Equal(t, journal.Invalid, a.Verdict)
			if strings.Contains(name, "refused") { // another attempt would be refused as well
				require.Empty(t, commands)
			} else {
				require.Len(t, commands, 1)
				require.Equal(t, runcommand.Repeat, commands[0].Kind)
			}

			require.NoError(t, e.MarkAttempt(t.Context(), run, Mark{Trial: 0, Attempt: 1, By: "ada"}))
			require.NoError(t, e.judgeOutages(t.Context(), openRun(t, e, run), false))
			r, _, err = s.Run(t.Context(), run)
			require.NoError(t, err)
			require.Nil(t, r.Trials[0].Attempts[0].Mark)
			require.False(t, strings.Contains(r.Trials[0].Attempts[0].Reason, "marked"))
		})
	}
}

// An outage of a relay whose kernel forwards packets concerns failures for want of a route,
// and successes where its interface was down.
func TestOutagesOfAForwardingRelay(t *testing.T) {
	down := func(j *storetest.Journal) {
		j.Pass(200 * time.Millisecond)
		j.Add(journal.TypeInterfaceFailed, journal.RadioInterface{Device: "radio0", Forwards: true, Fault: "it is down"})
		j.Pass(300 * time.Millisecond)
		j.Add(journal.TypeInterfaceReady, journal.RadioInterface{Device: "radio0"})
	}
	sheet := storetest.Sheet(2)
	encoded, err := sheet.Encode()
	require.NoError(t, err)
	away := func(j *storetest.Journal) {
		j.Pass(4 * time.Second)
		j.Add(journal.TypeRunResumed, journal.RunStarted{SheetHash: runsheet.Hash(encoded), Forwards: true, Alive: time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)})
	}
	for name, c := range map[string]struct {
		relay   func(j *storetest.Journal) // after 10 s of the run; the attempt begins there and takes 1.2 s
		verdict journal.Verdict
		mark    string // empty: none
	}{
		"interface down, no route": {down, journal.Failed, "the radio's interface radio0 of the relay was not in order at 12:00:10.2 UTC: it is down (the attempt had ended with unreachable)"},
		"interface down, success":  {down, journal.Succeeded, "the radio's interface radio0 of the relay was not in order at 12:00:10.2 UTC: it is down (the attempt had ended with a result)"},
		"agent away, success":      {away, journal.Succeeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			const start = 10 * time.Second
			s := storetest.Open(t)
			run := storetest.AddRun(t, s, "relay", sheet)
			all := map[radio.Role]*storetest.Journal{}
			for _, role := range radio.Roles {
				all[role] = storetest.NewJournal(run, role)
				all[role].Begin(sheet)
				all[role].Pass(start)
			}
			all[radio.RoleServer].Received("one", 0, 1)
			c.relay(all[radio.RoleRelay])
			client := all[radio.RoleClient]
			client.Start(sheet, 0, 1)
			client.End(sheet, 0, 1, c.verdict)
			if last := len(client.Records) - 1; strings.HasSuffix(name, "no route") {
				client.Records[last] = bytes.ReplaceAll(client.Records[last], []byte(`"reset"`), []byte(`"unreachable"`))
			}
			client.EndTrial(0, 1, c.verdict)
			for _, role := range radio.Roles {
				deliver(t, s, run, all[role])
			}
			require.NoError(t, s.InTx(t.Context(), func(tx store.Conn) error {
				q := campaigndb.New(tx)
				_, err := q.SetRunning(t.Context(), run)
				return err
			}))
			e := newEngine(Config{Store: s})
			require.NoError(t, e.judgeOutages(t.Context(), openRun(t, e, run), false))
			r, _, err := s.Run(t.Context(), run)
			require.NoError(t, err)
			a := r.Trials[0].Attempts[0]
			if c.mark == "" {
				require.Nil(t, a.Mark)
				require.Equal(t, c.verdict, a.Verdict)
				return
			}
			require.NotNil(t, a.Mark)
			require.Equal(t, c.mark, a.Mark.Reason)
			require.Equal(t, journal.Invalid, a.Verdict)
		})
	}
}
