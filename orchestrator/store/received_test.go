package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
)

// What the server reports of a transfer decides whether the client's success
// counts, whichever of the two journals arrives first.
func TestServerContradictsTheClient(t *testing.T) {
	text := func(s string) *string { return &s }
	num := func(n int64) *int64 { return &n }
	result := func(size, elapsed int64, digest string) store.Reception {
		return store.Reception{RunID: "r", Transfer: text("t"), SizeBytes: &size, ElapsedNs: &elapsed, Digest: &digest}
	}
	timed := func(took int64) store.Reception {
		r := result(10, 1e9, "d")
		r.PacketsNs = &took
		return r
	}
	failed := store.Reception{RunID: "r", Transfer: text("t"), Code: "corrupted", Message: "byte 7"}
	ahead := store.Reception{RunID: "r", Transfer: text("t"), Code: journal.ReasonMoreThanSent, Message: "8 of 7"}
	row := store.FlowRow{RunID: "r", Transfer: "t", Verdict: text("succeeded"), SizeBytes: num(10), ElapsedNs: num(1e9), ConnectNs: num(1), Digest: text("d")}
	trial := &runsheet.Trial{Flows: []runsheet.Flow{{SizeBytes: 10}}}
	for name, c := range map[string]struct {
		rows     []store.Reception
		verdict  journal.Verdict
		reason   string
		verified bool
	}{
		"nothing yet":                    {nil, journal.Succeeded, "", false},
		"the same":                       {[]store.Reception{result(10, 1e9, "d")}, journal.Succeeded, "", true},
		"of another transfer":            {[]store.Reception{{RunID: "r", Transfer: text("u"), Code: "reset"}, {RunID: "q", Transfer: text("t"), Code: "reset"}, {RunID: "r", Code: "reset"}}, journal.Succeeded, "", false},
		"an error":                       {[]store.Reception{failed}, journal.Invalid, journal.ReasonServerFailed, false},
		"an error, then a result":        {[]store.Reception{failed, result(10, 1e9, "d")}, journal.Succeeded, "", true},
		"counts that ran ahead":          {[]store.Reception{ahead}, journal.Invalid, journal.ReasonMoreThanSent, false},
		"the same, then a result":        {[]store.Reception{ahead, result(10, 1e9, "d")}, journal.Invalid, journal.ReasonMoreThanSent, false},
		"a result, then an error":        {[]store.Reception{result(10, 1e9, "d"), failed}, journal.Succeeded, "", true},
		"another digest":                 {[]store.Reception{result(10, 1e9, "e")}, journal.Invalid, journal.ReasonDigestDiffers, false},
		"another size":                   {[]store.Reception{result(11, 1e9, "d")}, journal.Invalid, journal.ReasonSizeDiffers, true},
		"a time longer than the clients": {[]store.Reception{result(10, 3e9, "d")}, journal.Invalid, journal.ReasonServerIsLonger, true},
		"packets as long":                {[]store.Reception{timed(1e9)}, journal.Succeeded, "", true},
		"packets took longer":            {[]store.Reception{timed(11e8)}, journal.Invalid, journal.ReasonFasterThanPackets, true},
	} {
		flows := []store.Flow{store.NewFlow(row, store.Received(c.rows))}
		a, err := store.BuildAttempt(&store.Attempt{Attempt: 1, Verdict: text("succeeded")}, flows, trial, nil)
		require.NoError(t, err)
		require.Equal(t, c.verdict, a.Verdict, name)
		require.Equal(t, c.reason, a.Reason, name)
		require.Equal(t, c.verified, a.Verified, name)
		require.Equal(t, c.reason != "", a.Message != "", name)
		require.Equal(t, c.verdict, store.OfTrial(journal.Succeeded, []report.Attempt{*a}), name)
		require.Equal(t, c.verdict == journal.Succeeded && c.verified, a.Valid(), name)
	}

	// Only a success is taken away; a person's mark stays what it is.
	flows := []store.Flow{store.NewFlow(row, store.Received([]store.Reception{failed}))}
	a, err := store.BuildAttempt(&store.Attempt{Attempt: 1, Verdict: text("aborted"), Reason: "interrupted"}, flows, trial, nil)
	require.NoError(t, err)
	require.Equal(t, journal.Aborted, a.Verdict)
	a, err = store.BuildAttempt(&store.Attempt{Attempt: 1, Verdict: text("succeeded")}, flows, trial, &store.Mark{Reason: "rain"})
	require.NoError(t, err)
	require.Equal(t, "marked: rain", a.Reason)
	require.Equal(t, journal.Verdict(""), store.OfTrial("", []report.Attempt{*a}), "a trial that has not ended")
}
