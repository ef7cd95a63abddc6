package uml

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"linktrial/internal/radio"
)

func TestRunOneSheet(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	s := plan(t, "run-1", line(64e3, 100*time.Millisecond, uniform(0.02)), 64<<10, 1, "tcp-cubic", "tcp-bbr", "sctp", "udt")
	res, err := Run(context.Background(), RunConfig{
		Kernel: b.kernel, Dir: dir, Sheets: []Sheet{s}, Executable: b.executable, Drivers: b.drivers,
		Progress: func(p Progress) { t.Logf("%+v %.1f", p, p.PerSecond()) },
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, nil)), Watchdog: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", res)
	for _, e := range attempts(t, res.Sheets[0].Journals[radio.RoleClient]) {
		t.Log(figure(e))
	}
}
