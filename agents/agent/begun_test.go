package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

// An agent that is killed before the run's first record is durable begins the run anew;
// a journal that had a record and is gone ends it. Found by a fault campaign with seed
// 42: a node's power was cut 0.4 s after the run's start, and the run was stopped.
func TestKilledBeforeTheFirstRecord(t *testing.T) {
	state := t.TempDir()
	const id = "x-1"
	path := JournalPath(state, id)
	n := &node{cfg: Config{Name: "server", Role: radio.RoleServer, StateDir: state, FloorBytes: 1}}
	start := func() (*run, *journal.File, error) {
		r := &run{node: n, id: id, dir: filepath.Dir(path), log: slog.New(slog.DiscardHandler)}
		require.NoError(t, os.MkdirAll(r.dir, 0o755))
		notes, bad, err := readNotes(n.cfg.runsDir())
		require.NoError(t, err)
		require.Empty(t, bad)
		r.note = note{Run: id, Desired: desiredPrepare}
		if len(notes) > 0 {
			r.note = notes[0]
		}
		require.NoError(t, r.note.write(r.dir))
		j, err := r.openJournal()
		return r, j, err
	}
	for range 2 { // killed twice, once with a record that was not synced
		_, j, err := start()
		require.NoError(t, err)
		_, err = j.Append(journal.TypeRunStarted, journal.RunStarted{})
		require.NoError(t, err)
		// What a killed process had not written is gone.
		require.NoError(t, os.Truncate(path, 0))
	}
	r, j, err := start()
	require.NoError(t, err)
	_, err = j.Append(journal.TypeRunStarted, journal.RunStarted{})
	require.NoError(t, err)
	require.NoError(t, runJournal{j, r}.Sync())
	require.NoError(t, j.Close())
	_, j, err = start()
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.NoError(t, os.Remove(path))
	_, _, err = start()
	require.ErrorContains(t, err, "is missing: the run had begun")
}
