package runner_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// viaSheet is a sheet of one treatment that passes relay processes at some roles,
// each with the fault.
func viaSheet(t *testing.T, fault string, iterations int, at ...radio.Role) []byte {
	t.Helper()
	s, err := runsheet.Decode(sheetOf(t, 64<<10, iterations, 1, treatment{"x", nil}))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range at {
		s.Treatments[0].Via = append(s.Treatments[0].Via, runsheet.Via{At: role, Protocol: "plain", Options: map[string]any{"fault": fault}, Port: freePort(t)})
	}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// attend starts the relay's part and returns when its listeners are recorded.
func attend(t *testing.T, dir string, sheet []byte) (*journal.File, func()) {
	t.Helper()
	cfg, j := node(t, dir, radio.RoleRelay, sheet)
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- executor.Attend(ctx, cfg) }()
	await(t, j, 1, journal.TypeListenerReady, journal.TypeListenerFailed)
	return j, func() {
		t.Helper()
		cancel(executor.ErrFinish)
		if err := <-done; err != nil {
			t.Errorf("attend: %v", err)
		}
	}
}

func await(t *testing.T, j *journal.File, n int, types ...journal.Type) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		changed := j.Changed()
		if count(t, j, types...) >= n {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%d records of %v, expected %d", count(t, j, types...), types, n)
		}
	}
}

// listened are the roles of the relay processes of which the journal has a record.
func listened(t *testing.T, j *journal.File, typ journal.Type) []radio.Role {
	t.Helper()
	var out []radio.Role
	for _, l := range bodies[journal.Listener](t, j, typ) {
		out = append(out, l.At)
	}
	slices.Sort(out)
	return out
}

// A transfer passes a relay process at every node, and each node's journal has its own.
func TestRelaysAtEveryNode(t *testing.T) {
	dir := t.TempDir()
	sheet := viaSheet(t, "", 2, radio.RoleClient, radio.RoleRelay, radio.RoleServer)
	sj, finish := serve(t, dir, sheet, 2)
	rj, leave := attend(t, dir, sheet)
	cfg, cj := node(t, dir, radio.RoleClient, sheet)
	if err := executor.Lead(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	leave()
	finish()
	for _, e := range bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded) {
		if e.Verdict != journal.Succeeded {
			t.Errorf("attempt %+v", e)
		}
	}
	for _, r := range bodies[journal.Received](t, sj, journal.TypeReceived) {
		if r.Result == nil || r.Result.SizeBytes != 64<<10 {
			t.Errorf("received %+v", r)
		}
	}
	for _, x := range []struct {
		j    *journal.File
		want []radio.Role
	}{{cj, []radio.Role{radio.RoleClient}}, {rj, []radio.Role{radio.RoleRelay}}, {sj, []radio.Role{"", radio.RoleServer}}} {
		if got := listened(t, x.j, journal.TypeListenerReady); !slices.Equal(got, x.want) {
			t.Errorf("ready were %q, expected %q", got, x.want)
		}
	}
	closeAll(t, sj, rj, cj)
}

// A relay process that dies in the middle fails the attempt, and is started again.
func TestRelayDies(t *testing.T) {
	dir := t.TempDir()
	sheet := viaSheet(t, "relay-dies", 2, radio.RoleRelay)
	sj, finish := serve(t, dir, sheet, 1)
	rj, leave := attend(t, dir, sheet)
	cfg, cj := node(t, dir, radio.RoleClient, sheet)
	if err := executor.Lead(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	await(t, rj, 2, journal.TypeListenerReady)
	leave()
	finish()
	for _, e := range bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded) {
		if e.Verdict != journal.Failed {
			t.Errorf("attempt %+v", e)
		}
	}
	if n := bodies[journal.Listener](t, rj, journal.TypeListenerFailed); len(n) == 0 || n[0].Restarts != 1 || n[0].At != radio.RoleRelay {
		t.Errorf("the relay's death is not in the journal: %+v", n)
	}
	closeAll(t, sj, rj, cj)
}

// A node that cannot run the relay driver says so once and goes on.
func TestRelayUnsupported(t *testing.T) {
	dir := t.TempDir()
	sheet := viaSheet(t, "no-relay", 1, radio.RoleRelay)
	rj, leave := attend(t, dir, sheet)
	leave()
	n := bodies[journal.Listener](t, rj, journal.TypeListenerFailed)
	if len(n) != 1 || n[0].Code != contract.CodeUnsupported || n[0].At != radio.RoleRelay {
		t.Errorf("failures %+v", n)
	}
	closeAll(t, rj)
}

// An attempt whose relay process cannot run on the leading node fails, and no client
// is started for it.
func TestOwnRelayIsDown(t *testing.T) {
	dir := t.TempDir()
	sheet := viaSheet(t, "no-relay", 1, radio.RoleClient)
	sj, finish := serve(t, dir, sheet, 1)
	cfg, cj := node(t, dir, radio.RoleClient, sheet)
	if err := executor.Lead(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	finish()
	e := bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded)[0]
	if e.Verdict != journal.Failed || e.Reason != string(contract.CodeUnsupported) || !strings.Contains(e.Message, "no relay here") || e.Log != "" {
		t.Errorf("attempt %+v", e)
	}
	closeAll(t, sj, cj)
}
