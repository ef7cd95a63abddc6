package agent

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/faultdisk"
	"linktrial/internal/radio"
)

// smallDisk mounts a file system of its own for a state folder.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fill takes all the room of a disk, and also what is given back meanwhile; the
// function that it returns gives it back.
func fill(t *testing.T, dir string) (release func()) {
	t.Helper()
	path := filepath.Join(dir, "something-else")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	full := make(chan struct{})
	go func() {
		defer close(done)
		defer f.Close()
		once := false
		for b := make([]byte, 4096); ; {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := f.Write(b); errors.Is(err, unix.ENOSPC) {
				if !once {
					once = true
					close(full)
				}
				time.Sleep(time.Millisecond) // what is given back is taken at the next try
			}
		}
	}()
	<-full
	return func() {
		close(stop)
		<-done
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// While a node's disk is full nothing is recorded there and nothing is counted; the
// orchestrator hears why the run waits, and it goes on by itself when there is room.
func TestRunOutlastsAFullDisk(t *testing.T) {
	for _, hit := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		t.Run(string(hit), func(t *testing.T) {
			dir := smallDisk(t)
			outlasts(t, hit, dir, func() func() { return fill(t, dir) }, "disk full: ")
		})
	}
}

// The same of a disk that returns errors for everything.
func TestRunOutlastsADiskWithErrors(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	for _, hit := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		t.Run(string(hit), func(t *testing.T) {
			dir := t.TempDir()
			d, err := faultdisk.Mount(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := d.Unmount(); err != nil {
					t.Error(err)
				}
			})
			outlasts(t, hit, dir, func() func() {
				d.Fail(faultdisk.Failure{Error: true})
				return func() { d.Fail(faultdisk.Failure{}) }
			}, "open "+dir+"/runs/run1/disk-check: input/output error")
		})
	}
}

// outlasts executes a run while the disk of one node's state folder fails for a time.
func outlasts(t *testing.T, hit radio.Role, dir string, fail func() (mend func()), why string) {
	t.Helper()
	// So many that what a node records of them does not fit into the last page of its
	// journal, for which it needs no room.
	const trials = 14
	o := newOrchestrator(t, sheetOf(t, trials, runsheet.ControlOutOfBand, 20))
	var stops []func()
	for _, role := range []radio.Role{radio.RoleServer, radio.RoleClient} {
		c := config(t, role, o.server.URL)
		if role == hit {
			c.StateDir = dir
		}
		stops = append(stops, runAgent(t, c))
	}
	o.want(linktrialv1.Assignment_DESIRED_STATE_RUN, "client", "server")
	eventually(t, "a trial has ended", o.has("client", journal.TypeTrialEnded, 1))
	mend := fail()
	fault := func() string {
		o.mu.Lock()
		defer o.mu.Unlock()
		// Beside it there may be what a trial waits for, such as the server's listener.
		for _, f := range o.faults[string(hit)] {
			if f.RunId != "" {
				t.Errorf("the fault ends the run: %s", f.Text)
			}
			if strings.Contains(f.Text, "its journal cannot be written") {
				return f.Text
			}
		}
		return ""
	}
	eventually(t, "the orchestrator hears of the disk", func() bool { return fault() != "" })
	if want := "run run1 waits for this node: its journal cannot be written (" + why; !strings.HasPrefix(fault(), want) {
		t.Errorf("fault %q, expected %q…", fault(), want)
	}
	mend()
	eventually(t, "the fault is mended", func() bool { return fault() == "" })
	eventually(t, "end of the client's part", o.has("client", journal.TypeRunEnded, 1))
	o.want(linktrialv1.Assignment_DESIRED_STATE_FINISH, "client", "server")
	eventually(t, "end of the server's part", o.has("server", journal.TypeRunEnded, 1))
	for _, stop := range stops {
		stop()
	}
	o.wellRecorded(t, trials, hit == radio.RoleClient)
}

// wellRecorded holds what the client delivered against the sheet: the trials ended in
// its order, each once, and of the attempts that overlap the fault none counts.
func (o *orchestrator) wellRecorded(t *testing.T, trials int, leaderHit bool) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	next, aborted := 0, 0
	for _, r := range o.stored["client"] {
		switch r.Type {
		case journal.TypeTrialEnded:
			var b journal.TrialEnded
			if err := json.Unmarshal(r.Body, &b); err != nil || b.Trial != next {
				t.Errorf("trial %d has ended, expected trial %d (%v)", b.Trial, next, err)
			}
			next++
		case journal.TypeAttemptEnded:
			var b journal.AttemptEnded
			if err := json.Unmarshal(r.Body, &b); err != nil {
				t.Error(err)
			}
			if b.Verdict == journal.Aborted {
				aborted++
			} else if b.Verdict != journal.Succeeded && (b.Verdict != journal.Invalid || !journal.ApparatusFault(b.Reason)) {
				t.Errorf("attempt %d/%d: %s %s %s", b.Trial, b.Attempt, b.Verdict, b.Reason, b.Message)
			}
		case journal.TypeRunEnded:
			var b journal.RunEnded
			if err := json.Unmarshal(r.Body, &b); err != nil || b.End != journal.RunCompleted {
				t.Errorf("the run ended as %+v (%v)", b, err)
			}
		}
	}
	if next != trials || leaderHit && aborted > 1 {
		t.Errorf("%d trials of %d have ended, %d attempts were aborted", next, trials, aborted)
	}
	if count(o.stored["client"], journal.TypeRunEnded) != 1 {
		t.Error("the run did not end once")
	}
}
