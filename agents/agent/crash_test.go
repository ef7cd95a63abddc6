package agent

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// A leading agent is killed again and again at any moment, and started again:
// in the end every trial has one terminal record, nothing is lost or repeated,
// and no driver is left.
func TestKilledLeader(t *testing.T) {
	const trials, kills = 6, 5
	sheet := sheetOf(t, trials, runsheet.ControlOutOfBand, 10)
	server := config(t, radio.RoleServer, "")
	write := func(c Config) string {
		path := filepath.Join(c.StateDir, "the-sheet.json")
		if err := os.WriteFile(path, sheet, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(SignaturePath(path), []byte(signed(sheet).String()+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	finish := make(chan struct{})
	served := make(chan error, 1)
	path := write(server)
	go func() { served <- RunSheet(context.Background(), server, "run1", path, finish) }()
	eventually(t, "listener", func() bool { return fileHas(server, journal.TypeListenerReady) > 0 })

	client := config(t, radio.RoleClient, "")
	client.Logger = nil
	write(client)
	spec, err := json.Marshal(client)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
		cmd.Stderr = os.Stderr
		if err := process.Start(cmd); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	killed := 0
	for range kills {
		cmd := start()
		// Most of the time is spent in a trial; the rest hits every other place.
		time.Sleep(time.Duration(30+draw.IntN(250)) * time.Millisecond)
		cmd.Process.Kill()
		if err := cmd.Wait(); err != nil {
			killed++
		}
	}
	if err := start().Wait(); err != nil {
		t.Fatalf("last start: %v", err)
	}
	close(finish)
	if err := <-served; err != nil {
		t.Errorf("server: %v", err)
	}
	if killed == 0 {
		t.Error("no start was killed")
	}

	j, err := journal.Open(JournalPath(client.StateDir, "run1"), journal.Identity{Run: "run1", Node: "client", Role: radio.RoleClient}, journal.Options{ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var ended []int
	interrupted, open, runEnds := 0, false, 0
	transfers := map[string]bool{}
	err = j.Records(func(r journal.Record) error {
		switch r.Type {
		case journal.TypeAttemptStarted:
			var b journal.AttemptStarted
			json.Unmarshal(r.Body, &b)
			if open || transfers[b.Transfers[0]] || b.Trial != len(ended) {
				t.Errorf("record %d: attempt %d/%d starts out of turn", r.Seq, b.Trial, b.Attempt)
			}
			open, transfers[b.Transfers[0]] = true, true
		case journal.TypeAttemptEnded:
			var b journal.AttemptEnded
			json.Unmarshal(r.Body, &b)
			open = false
			if b.Verdict == journal.Aborted {
				interrupted++
			} else if b.Verdict != journal.Succeeded {
				t.Errorf("attempt %d/%d: %s %s %s", b.Trial, b.Attempt, b.Verdict, b.Reason, b.Message)
			}
		case journal.TypeTrialEnded:
			var b journal.TrialEnded
			json.Unmarshal(r.Body, &b)
			ended = append(ended, b.Trial)
		case journal.TypeRunEnded:
			runEnds++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills, %d attempts interrupted", killed, interrupted)
	if len(ended) != trials || runEnds != 1 || open {
		t.Errorf("trials ended %v, %d ends of the run", ended, runEnds)
	}
	for i, n := range ended {
		if i != n {
			t.Errorf("trials ended in the order %v", ended)
			break
		}
	}
	for _, c := range []Config{client, server} {
		if left, _ := filepath.Glob(filepath.Join(c.StateDir, "pids", "*.json")); len(left) > 0 {
			t.Errorf("processes are still noted: %v", left)
		}
	}
}

func fileHas(c Config, typ journal.Type) int {
	f, err := os.Open(JournalPath(c.StateDir, "run1"))
	if err != nil {
		return 0
	}
	defer f.Close()
	n := 0
	journal.Scan(f, func(r journal.Record, _ int64) error {
		if r.Type == typ {
			n++
		}
		return nil
	})
	return n
}
