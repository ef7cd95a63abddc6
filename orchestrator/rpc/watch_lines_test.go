package rpc

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/orchestrator/ingest"
)

// What a driver wrote cannot move the cursor of whoever watches.
func TestTextOfIsOneCleanLine(t *testing.T) {
	body, err := json.Marshal(journal.Misbehaviour{Treatment: "tcp", Message: "wrote \x1b[2J\nand \u202egnp"})
	require.NoError(t, err)
	require.Equal(t, "the driver of tcp misbehaved: wrote [2J and gnp", textOf(journal.TypeDriverMisbehaved, body))
}

// FuzzTextOf: every record is one line without control characters.
func FuzzTextOf(f *testing.F) {
	trial := 1
	for kind, body := range map[journal.Type]any{
		journal.TypeRunStarted:       journal.RunStarted{SheetHash: "0123456789abcdef", Version: "1", Trials: 3},
		journal.TypeRunResumed:       journal.RunStarted{Version: "1"},
		journal.TypeRunEnded:         journal.RunEnded{End: journal.RunStopped, Reason: "disk full"},
		journal.TypeProvenance:       journal.Provenance{Host: "a", Kernel: "6.1"},
		journal.TypeClockOffset:      journal.ClockOffset{When: "before", Unknown: "no time service"},
		journal.TypeClockStepped:     journal.ClockStepped{By: -time.Hour},
		journal.TypeListenerReady:    journal.Listener{Treatment: "tcp", Port: 5001},
		journal.TypeListenerFailed:   journal.Listener{Treatment: "tcp", Code: "listen-failed", Message: "in use"},
		journal.TypeAttemptStarted:   journal.AttemptStarted{Trial: 1, Attempt: 1, Treatment: "tcp", Iteration: 1},
		journal.TypeConnected:        journal.Connected{Trial: 1, ConnectNS: 12},
		journal.TypeReceived:         journal.Received{Treatment: "tcp"},
		journal.TypeWaiting:          journal.Waiting{Trial: 1, Fault: "no packet passes"},
		journal.TypeAttemptEnded:     journal.AttemptEnded{Trial: 1, Verdict: journal.Failed, Reason: "reset", Message: "x\ny"},
		journal.TypeTrialEnded:       journal.TrialEnded{Trial: 1, Verdict: journal.Failed, Attempts: 2},
		journal.TypeCommand:          journal.Command{ID: "a", Kind: journal.CommandRepeat, Trial: &trial, By: "anna", Rejected: "too late"},
		journal.TypeTelemetryFailed:  journal.Telemetry{Source: "radio", Error: "no answer"},
		journal.TypeDriverMisbehaved: journal.Misbehaviour{Treatment: "tcp", Trial: &trial, Message: "a\x1b[31mb"},
		ingest.TypeRefused:           ingest.Refused{Type: "samples", Reason: "its time"},
	} {
		b, err := json.Marshal(body)
		require.NoError(f, err)
		f.Add(string(kind), b)
	}
	f.Add("unheard-of", []byte("["))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		text := textOf(journal.Type(kind), body)
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Fatalf("%q", text)
		}
		if reason := reasonOf(body); len(reason) > 8*len(body)+1000 {
			t.Fatalf("%d bytes of %d", len(reason), len(body))
		}
	})
}
