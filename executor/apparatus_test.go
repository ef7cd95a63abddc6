package executor

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// A listener that was ended after it had been waited for and before the attempt began is
// an outage of it, though nothing happens to it any more.
func TestListenerEndsBeforeTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		sheet, err := runsheet.Decode(testSheet(t, 1, 1))
		require.NoError(t, err)
		n := newNode(Config{Role: radio.RoleServer, Journal: j}, sheet)
		trial := &n.sheet.Trials[0]
		name := listenersAt(n.sheet, trial, radio.RoleServer)[0]
		n.listeners.ready(name, 5001, n.Clock.Now())
		require.NoError(t, n.awaitListeners(t.Context(), trial))
		n.listeners.outage(name, Outage{Text: "was ended from outside: signal: killed"}, "killed", n.Clock.Now())
		over := make(chan struct{})
		outage := n.watchListeners(trial)
		n.listeners.ready(name, 5001, n.Clock.Now()) // while the attempt's flow was refused
		close(over)
		require.Equal(t, Outage{Text: n.describe(name) + " was ended from outside: signal: killed"}, outage(t.Context(), over))

		require.Empty(t, n.watchListeners(trial)(t.Context(), over)) // it is no outage of the next attempt
	})
}
