package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/replay"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// pinning is a runner that calls a function when the drivers are to be compared.
type pinning struct {
	runnable
	pin func()
}

func (p pinning) Pin(ctx context.Context) error {
	p.pin()
	return ctx.Err()
}

// A run that ends while its node compares the drivers has its end in the journal, as the
// orchestrator wanted it, or none where the agent itself was stopped. Found by a disk that
// had failed until the client was done: the server began again, was told to finish, and
// never said that it had.
func TestEndWhileDriversAreCompared(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		end   journal.RunEnd
	}{
		"finish": {executor.ErrFinish, journal.RunCompleted},
		"abort":  {&executor.AbortError{By: "orchestrator", Reason: "by command"}, journal.RunAborted},
		"stop":   {context.Canceled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			a, release, err := start(t.Context(), config(t, radio.RoleServer, ""))
			require.NoError(t, err)
			defer release()
			a.runner = pinning{a.runner, func() { cancel(c.cause) }}
			encoded := sheetOf(t, 1, runsheet.ControlOutOfBand, 0)
			sheet, err := runsheet.Decode(encoded)
			require.NoError(t, err)
			path := JournalPath(a.cfg.StateDir, "run1")
			r := &run{node: &a.node, id: "run1", hash: runsheet.Hash(encoded), dir: filepath.Dir(path), cancel: cancel, log: slog.New(slog.DiscardHandler)}
			require.NoError(t, os.MkdirAll(r.dir, 0o755))
			j, err := r.openJournal()
			require.NoError(t, err)
			defer j.Close()
			err = (&execution{run: r, encoded: encoded, sheet: sheet, journal: j}).execute(ctx)
			state, rerr := replay.Journal(j)
			require.NoError(t, rerr)
			last := journal.RunEnded{}
			if state.Ended != nil {
				last = *state.Ended
			}
			require.Equal(t, c.end, last.End)
			require.Equal(t, c.end == "", errors.Is(err, context.Canceled), "%v", err)
		})
	}
}
