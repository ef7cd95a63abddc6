package executor

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/notify"
)

// interfaceAt is what [Config.Interface] knows.
type interfaceAt struct {
	mu      sync.Mutex
	fault   string
	until   time.Time
	changed notify.Notifier
}

func (i *interfaceAt) Since(at time.Time) (fault string, more <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fault != "" && !i.until.Before(at) {
		fault = i.fault
	}
	return fault, i.changed.Changed()
}

// An attempt during which the radio's interface was not in order is ended at once, is
// invalid whatever the transfer does, and is repeated. Found by a fault campaign: with
// the interface down for 3 s, transfers of 1.4 s that took 6 s counted for their
// protocols.
func TestInterfaceOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		i := &interfaceAt{}
		r := &stopping{happens: func(*stoppedProcess) {
			i.mu.Lock()
			i.fault, i.until = "it is down", time.Now()
			i.mu.Unlock()
			i.changed.Notify()
		}}
		cfg := config(testSheet(t, 1, 1), j, r, &fakeRadio{})
		cfg.Interface, cfg.Device = i, "radio0"
		require.NoError(t, Lead(t.Context(), cfg))
		sameStory(t, j, "start 0/1", "end 0/1 invalid radio-down", "start 0/2", "end 0/2 succeeded", "trial 0 succeeded", "run completed")
		for _, x := range read(t, j) {
			if x.Type == journal.TypeAttemptEnded {
				m := body[journal.AttemptEnded](t, x).Message
				require.True(t, strings.HasPrefix(m, "the radio's interface radio0 of the client was not in order: it is down"), m)
				break
			}
		}
	})
}
