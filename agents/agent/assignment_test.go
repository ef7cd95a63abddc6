package agent

import (
	"crypto/ed25519"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"linktrial/agents/session"
	"linktrial/agents/trust"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
)

var testChallenge = []byte("the challenge of this very call!")

// contacts counts the datagrams that arrive at a port.
func contacts(t *testing.T) (port int, count func() int) {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.LocalAddr().(*net.UDPAddr).Port, func() (n int) {
		b := make([]byte, 2048)
		for {
			_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			if _, _, err := c.ReadFrom(b); err != nil {
				return n
			}
			n++
		}
	}
}

// victim is an agent that trusts signingKey, without an orchestrator.
func victim(t *testing.T) *agent {
	t.Helper()
	c := config(t, radio.RoleServer, "http://127.0.0.1:1")
	c.Radio, c.RadioHost = "r", "127.0.0.1"
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	a := &agent{node: node{cfg: c, slot: make(chan struct{}, 1)}, runs: map[string]*run{}}
	a.radio = &radioPoller{idle: a.cfg.poller(nil, nil, nil)}
	var err error
	if a.trust, err = trust.Open(a.cfg.Trust); err != nil {
		t.Fatal(err)
	}
	// Nothing is called: what is accepted is enough.
	if a.session, err = session.New(session.Config{URL: c.Orchestrator, Name: c.Name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.session.Close)
	return a
}

// runFor is a run's assignment for the victim, as its orchestrator makes it.
func runFor(a *agent, sheet []byte) *linktrialv1.Assignment {
	as := assignmentOf(&linktrialv1.PollRequest{Name: a.cfg.Name, Challenge: testChallenge})
	sig := signed(sheet)
	as.RunId, as.SheetHash, as.DesiredState, as.Role = "run1", runsheet.Hash(sheet), linktrialv1.Assignment_DESIRED_STATE_PREPARE, string(a.cfg.Role)
	as.Signature = &linktrialv1.SheetSignature{KeyId: sig.KeyID, Signature: sig.Bytes}
	as.RadioAddresses = map[string]string{"client": "127.0.0.1"}
	return as
}

func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What a false orchestrator, or somebody between the true one and the node, can send is
// refused with one sentence; no run begins, and nothing of it stays on the disk.
func TestAssignmentsThatAreRefused(t *testing.T) {
	sheet := sheetOf(t, 1, runsheet.ControlOutOfBand, 0)
	again := func(s *linktrialv1.SignedAssignment, f func(*linktrialv1.Assignment)) { // altered after it was signed
		as := new(linktrialv1.Assignment)
		if err := proto.Unmarshal(s.Assignment, as); err != nil {
			t.Fatal(err)
		}
		f(as)
		s.Assignment, _ = proto.Marshal(as)
	}
	for name, c := range map[string]struct {
		before func(*linktrialv1.Assignment)
		after  func(*linktrialv1.SignedAssignment)
		want   string
	}{
		"not signed":     {nil, func(s *linktrialv1.SignedAssignment) { s.KeyId, s.Signature = "", nil }, "the assignment is not signed"},
		"nothing at all": {nil, func(s *linktrialv1.SignedAssignment) { proto.Reset(s) }, "the assignment is not signed"},
		"signed by another": {nil, func(s *linktrialv1.SignedAssignment) {
			x := signature.SignAssignment(strangeKey, s.Assignment)
			s.KeyId, s.Signature = x.KeyID, x.Bytes
		}, "which this node does not trust"},
		"a sheet's signature": {nil, func(s *linktrialv1.SignedAssignment) {
			s.Signature = signature.SignSheet(signingKey, "run1", s.Assignment).Bytes
		}, "does not match its signature"},
		"other addresses of peers": {nil, func(s *linktrialv1.SignedAssignment) {
			again(s, func(as *linktrialv1.Assignment) { as.RadioAddresses["client"] = "192.0.2.66" })
		}, "does not match its signature"},
		"other telemetry addresses": {nil, func(s *linktrialv1.SignedAssignment) {
			again(s, func(as *linktrialv1.Assignment) { as.TelemetryAddresses = []string{"192.0.2.66:161"} })
		}, "does not match its signature"},
		"another profile": {nil, func(s *linktrialv1.SignedAssignment) {
			s.Sheet = []byte(strings.Replace(string(s.Sheet), `"radio":{`, `"radio":{"telemetry":[{"name":"x"}],`, 1))
		}, "it was changed on its way"},
		"no sheet":               {nil, func(s *linktrialv1.SignedAssignment) { s.Sheet = nil }, "it was changed on its way"},
		"another node's":         {func(as *linktrialv1.Assignment) { as.Node = "relay" }, nil, `the assignment is for node "relay", and this is node "server"`},
		"another role's":         {func(as *linktrialv1.Assignment) { as.Role = "client" }, nil, "is for a client, and this node is a server"},
		"an enrolled machine's":  {func(as *linktrialv1.Assignment) { as.NodeKey = make([]byte, 32) }, nil, "for another machine with the name server"},
		"expired":                {func(as *linktrialv1.Assignment) { as.ExpiresUnixMs = time.Now().Add(-time.Minute).UnixMilli() }, nil, "the assignment expired at "},
		"without an expiry":      {func(as *linktrialv1.Assignment) { as.ExpiresUnixMs = 0 }, nil, "the assignment expired at "},
		"of an earlier call":     {func(as *linktrialv1.Assignment) { as.Challenge = []byte("an earlier one") }, nil, "it was recorded and sent again"},
		"without a challenge":    {func(as *linktrialv1.Assignment) { as.Challenge = nil }, nil, "it was recorded and sent again"},
		"finished already":       {func(as *linktrialv1.Assignment) { as.RunId = "run0" }, nil, "this node has finished run run0 already"},
		"a path as its identity": {func(as *linktrialv1.Assignment) { as.RunId = "../../etc" }, nil, "expected letters, digits"},
	} {
		t.Run(name, func(t *testing.T) {
			a := victim(t)
			if err := rememberFinished(a.cfg.runsDir(), []string{"run0"}); err != nil {
				t.Fatal(err)
			}
			before := files(t, a.cfg.StateDir)
			as := runFor(a, sheet)
			if c.before != nil {
				c.before(as)
			}
			s := seal(signingKey, as)
			s.Sheet = sheet
			if c.after != nil {
				c.after(s)
			}
			r := session.Answer{Assignments: []*linktrialv1.SignedAssignment{s}, Challenge: testChallenge}
			for range 3 {
				if !a.applyAssignments(t.Context(), r) {
					t.Fatal("the answer is accepted")
				}
			}
			if len(a.refused) != 1 || !strings.Contains(a.refused[0].text, c.want) || !strings.HasPrefix(a.refused[0].text, "refused: ") || strings.Contains(a.refused[0].text, "\n") {
				t.Errorf("%+v, expected one sentence with %q", a.refused, c.want)
			}
			if after := files(t, a.cfg.StateDir); !slices.Equal(before, after) || len(a.runs) != 0 {
				t.Errorf("%d runs, and files %v", len(a.runs), after)
			}
			// What is refused is the fault of the last answer alone.
			empty := seal(signingKey, assignmentOf(&linktrialv1.PollRequest{Name: "server", Challenge: testChallenge}))
			if a.applyAssignments(t.Context(), session.Answer{Assignments: []*linktrialv1.SignedAssignment{empty}, Challenge: testChallenge}) || len(a.refused) != 0 {
				t.Errorf("after a good answer: %+v", a.refused)
			}
		})
	}
}

// The radio profile of a false orchestrator is neither read nor polled, not in a
// preflight and not between runs, and an address that the assignment does not name is
// not asked.
func TestProfilesThatAreRefused(t *testing.T) {
	port, count := contacts(t)
	profile := fmt.Appendf(nil, `{"name":"r","telemetry":[{"name":"x","kind":"snmp","on":"both","poll":"always","interval_ns":1,"host":"127.0.0.1","port":%d,"snmp":{"version":"2c","community":"public"},"values":[{"name":"x","oid":"1.3","scale":1}]}]}`, port)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for name, c := range map[string]struct {
		key   ed25519.PrivateKey
		named []string
		asked bool
	}{
		"false":              {strangeKey, []string{address}, false},
		"address not named":  {signingKey, nil, false},
		"the orchestrator's": {signingKey, []string{address}, true},
	} {
		a := victim(t)
		as := assignmentOf(&linktrialv1.PollRequest{Name: "server", Challenge: testChallenge})
		as.RadioProfile, as.TelemetryAddresses = profile, c.named
		a.learnRadio(seal(c.key, as), testChallenge)
		a.radio.idle.Check(t.Context())
		if n := count(); n > 0 != c.asked {
			t.Errorf("%s: %d datagrams between runs", name, n)
		}
		if refused := strings.Contains(a.profileFault, "refused: "); refused != (c.key.Equal(strangeKey)) {
			t.Errorf("%s: the orchestrator is told %q", name, a.profileFault)
		}
		if !c.key.Equal(strangeKey) {
			continue // TestPreflightWhenWanted has one that is carried out
		}
		as.RadioProfile, as.Preflight = nil, &linktrialv1.PreflightRequest{Id: "p", RadioProfile: profile}
		refused := a.applyAssignments(t.Context(), session.Answer{Assignments: []*linktrialv1.SignedAssignment{seal(c.key, as)}, Challenge: testChallenge})
		if !refused || a.preflightID != "" || count() > 0 {
			t.Errorf("%s: refused %v, preflight %q", name, refused, a.preflightID)
		}
	}
}

// A run ends for a node that the orchestrator no longer lists only when a signed and
// whole answer says so: an empty one proves nothing.
func TestAbsenceIsSigned(t *testing.T) {
	a := victim(t)
	mine := &run{node: &a.node, id: "run1", cancel: func(error) {}}
	a.runs["run1"] = mine
	other := assignmentOf(&linktrialv1.PollRequest{Name: "server", Challenge: testChallenge})
	other.Total = 2 // and the other one was taken out
	none := assignmentOf(&linktrialv1.PollRequest{Name: "server", Challenge: testChallenge})
	stale := assignmentOf(&linktrialv1.PollRequest{Name: "server", Challenge: []byte("before")})
	for name, list := range map[string][]*linktrialv1.SignedAssignment{
		"empty": nil, "not signed": {{}}, "one was taken out": {seal(signingKey, other)}, "the same twice": {seal(signingKey, other), seal(signingKey, other)}, "recorded": {seal(signingKey, stale)},
	} {
		a.applyAssignments(t.Context(), session.Answer{Assignments: list, Challenge: testChallenge})
		if mine.unlisted != 0 {
			t.Fatalf("%s: the run counts as no longer listed", name)
		}
	}
	a.applyAssignments(t.Context(), session.Answer{Assignments: []*linktrialv1.SignedAssignment{seal(signingKey, none)}, Challenge: testChallenge})
	if mine.unlisted != 1 {
		t.Error("a signed answer without the run does not count")
	}
}

// A refusal does not end a run that goes on here: who sent the assignment may be
// anybody.
func TestRefusalOfARunUnderWay(t *testing.T) {
	a := victim(t)
	a.runs["run1"] = &run{node: &a.node, id: "run1"}
	a.applyAssignments(t.Context(), session.Answer{Assignments: []*linktrialv1.SignedAssignment{{RefusedRunId: "run1"}, {RefusedRunId: "run2"}, {RefusedRunId: "../x"}}, Challenge: testChallenge})
	var runs []string
	for _, f := range a.refused {
		runs = append(runs, f.run)
	}
	if !slices.Equal(runs, []string{"", "run2", ""}) {
		t.Errorf("faults of the runs %q", runs)
	}
	many := make([]*linktrialv1.SignedAssignment, 5000)
	for i := range many {
		many[i] = &linktrialv1.SignedAssignment{RefusedRunId: fmt.Sprint("r", i)}
	}
	a.applyAssignments(t.Context(), session.Answer{Assignments: many, Challenge: testChallenge})
	if len(a.refused) > maxRefused {
		t.Errorf("%d faults are kept", len(a.refused))
	}
}

// A run that has ended takes no memory once the orchestrator has all of it, and does not
// begin again; one that is not stored yet stays.
func TestStoredRunsAreForgotten(t *testing.T) {
	a := victim(t)
	for id, stored := range map[string]time.Time{"run1": time.Now(), "run2": {}} {
		r := &run{node: &a.node, id: id, dir: filepath.Join(a.cfg.runsDir(), id), note: note{Run: id, Desired: desiredFinish, Taken: time.Now(), Stored: stored}}
		if err := os.MkdirAll(r.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := r.note.write(r.dir); err != nil {
			t.Fatal(err)
		}
		a.runs[id] = r
		a.forget(r)
	}
	if len(a.runs) != 1 || a.runs["run2"] == nil {
		t.Errorf("runs in memory: %v", slices.Collect(maps.Keys(a.runs)))
	}
	if !a.isStored("run1") {
		t.Error("the run that was stored may begin again")
	}
	a.applyAssignments(t.Context(), session.Answer{Assignments: []*linktrialv1.SignedAssignment{{RefusedRunId: "run1"}}, Challenge: testChallenge})
	if len(a.refused) != 1 || a.refused[0].run != "" {
		t.Errorf("a refusal names a run that has been stored: %v", a.refused)
	}
}

// A completed assignment is sent again, to the node that had it and in the true
// orchestrator's name, also after the run was removed from the node's disk.
func TestFinishedRunsAreRemembered(t *testing.T) {
	runs := t.TempDir()
	var notes []note
	old := time.Now().Add(-30 * 24 * time.Hour)
	for i := range 3 {
		n := note{Run: fmt.Sprint("r", i), Desired: desiredFinish, Taken: old.Add(time.Duration(i)), Stored: old}
		if err := os.MkdirAll(filepath.Join(runs, n.Run), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := n.write(filepath.Join(runs, n.Run)); err != nil {
			t.Fatal(err)
		}
		notes = append(notes, n)
	}
	if err := prune(runs, notes, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := readFinished(runs); !slices.Equal(got, []string{"r0", "r1", "r2"}) {
		t.Errorf("remembered %q", got)
	}
	if list, bad, err := readNotes(runs); len(list) != 0 || len(bad) != 0 || err != nil {
		t.Errorf("%v, %v, %v", list, bad, err)
	}
	many := make([]string, finishedMax+10)
	for i := range many {
		many[len(many)-1-i] = strings.Repeat("x", 120) + fmt.Sprint(i) // from the newest, as prune has them
	}
	if err := rememberFinished(runs, many); err != nil {
		t.Fatal(err)
	}
	if got := readFinished(runs); len(got) != finishedMax || got[len(got)-1] != many[0] || slices.Contains(got, "r0") {
		t.Errorf("%d are remembered, the newest is %q", len(got), got[len(got)-1])
	}
}

// What was accepted is verified again when the agent is started again: an assignment
// that was changed in the node's own folder starts nothing.
func TestStoredAssignmentIsVerified(t *testing.T) {
	o := newOrchestrator(t, sheetOf(t, 1, runsheet.ControlOutOfBand, 0))
	o.spoil = func(as *linktrialv1.Assignment) { as.RadioAddresses = map[string]string{"client": "127.0.0.1"} }
	cfg := config(t, radio.RoleServer, o.server.URL)
	stop := runAgent(t, cfg)
	o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "server")
	eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
	stop()
	dir := filepath.Join(cfg.StateDir, "runs", "run1")
	notes, _, err := readNotes(filepath.Dir(dir))
	if err != nil || len(notes) != 1 {
		t.Fatal(notes, err)
	}
	as := new(linktrialv1.Assignment)
	if err := proto.Unmarshal(notes[0].Assignment, as); err != nil {
		t.Fatal(err)
	}
	as.RadioAddresses["client"] = "192.0.2.66"
	notes[0].Assignment, _ = proto.Marshal(as)
	if err := notes[0].write(dir); err != nil {
		t.Fatal(err)
	}
	stop = runAgent(t, cfg)
	eventually(t, "refusal", o.has("server", journal.TypeRunEnded, 1))
	if e := o.end("server"); e.End != journal.RunStopped || !strings.Contains(e.Reason, "the assignment does not match its signature") {
		t.Errorf("%s %q", e.End, e.Reason)
	}
	stop()
}

// The orchestrator's key is rotated while a run is under way: what it signs from then
// on is followed.
func TestKeyIsRotatedDuringARun(t *testing.T) {
	o := newOrchestrator(t, sheetOf(t, 1, runsheet.ControlOutOfBand, 0))
	stop := runAgent(t, config(t, radio.RoleServer, o.server.URL))
	o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "server")
	eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
	o.mu.Lock()
	o.key = strangeKey
	o.keys = []*linktrialv1.SigningKey{shown(signature.Endorsed{Key: signature.PublicOf(signingKey)}), shown(signature.Endorse(signingKey, signature.PublicOf(strangeKey)))}
	o.mu.Unlock()
	o.want(linktrialv1.Assignment_DESIRED_STATE_FINISH, "server")
	eventually(t, "end of the server's part", o.has("server", journal.TypeRunEnded, 1))
	if e := o.end("server"); e.End != journal.RunCompleted {
		t.Errorf("%s %q", e.End, e.Reason)
	}
	stop()
}

// No bytes make the node do anything but refuse them, unless they are signed; signed
// ones are refused or name this node.
func FuzzOpenAssignment(f *testing.F) {
	sheet := []byte(`{"format":1}`)
	cfg := Config{Name: "server", Role: radio.RoleServer, StateDir: f.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	a := &agent{node: node{cfg: cfg}, runs: map[string]*run{}}
	var err error
	if a.trust, err = trust.Open(trust.Config{Keys: []signature.PublicKey{signature.PublicOf(signingKey)}}); err != nil {
		f.Fatal(err)
	}
	good, err := proto.Marshal(runFor(a, sheet))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, []byte{}, true)
	f.Add(good, good[:64], false)
	f.Add([]byte{}, []byte{}, true)
	f.Fuzz(func(t *testing.T, encoded, sig []byte, sign bool) {
		s := &linktrialv1.SignedAssignment{Assignment: encoded, KeyId: signature.PublicOf(signingKey).ID(), Signature: sig, Sheet: sheet}
		if sign {
			s.Signature = signature.SignAssignment(signingKey, encoded).Bytes
		}
		as, err := a.openAssignment(s, testChallenge, false)
		if brief, berr := a.openAssignment(s, testChallenge, true); err == nil && (berr != nil || !proto.Equal(brief, as)) {
			t.Errorf("the answer to a brief poll has %v, %v", brief, berr)
		}
		switch {
		case err == nil && (!sign || as.Node != "server" || string(as.Challenge) != string(testChallenge) || as.RunId != "" && (as.Role != "server" || !runForm.MatchString(as.RunId) || as.SheetHash != runsheet.Hash(sheet))):
			t.Errorf("accepted, signed %v: %v", sign, as)
		case err != nil && (!strings.HasPrefix(err.Error(), "refused: ") || strings.Contains(err.Error(), "\n")):
			t.Errorf("%q is not one sentence", err)
		}
	})
}

// BenchmarkAssignment is what a node and its orchestrator pay for the signature of one
// assignment.
func BenchmarkAssignment(b *testing.B) {
	a := &agent{node: node{cfg: Config{Name: "server", Role: radio.RoleServer, StateDir: b.TempDir()}}, runs: map[string]*run{}}
	var err error
	if a.trust, err = trust.Open(trust.Config{Keys: []signature.PublicKey{signature.PublicOf(signingKey)}}); err != nil {
		b.Fatal(err)
	}
	sheet := make([]byte, 64<<10)
	as := runFor(a, sheet)
	as.NodeKey = nil
	as.RadioAddresses = map[string]string{"client": "10.78.0.1", "relay": "10.78.0.2", "server": "10.78.0.3"}
	as.TelemetryAddresses = []string{"radio:161", "192.168.1.1:161", "127.0.0.1:2947"}
	s := seal(signingKey, as)
	s.Sheet = sheet
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			seal(signingKey, as)
		}
		b.ReportMetric(float64(len(s.Assignment)+len(s.Signature)+len(s.KeyId)), "bytes")
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if _, err := a.openAssignment(s, testChallenge, false); err != nil {
				b.Fatal(err)
			}
		}
	})
}
