package uml

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
	"linktrial/lab/faults"
	"linktrial/lab/uml/guest"
)

// faulty is a sheet during which faults from a seed are injected.
func faulty(t *testing.T, s Sheet, seed uint64, every time.Duration) Sheet {
	t.Helper()
	nodes := faults.Nodes{All: radio.Roles, Drivers: []radio.Role{radio.RoleClient, radio.RoleServer}, Lab: faults.Virtual}
	s.Faults = &guest.Faults{Seed: seed, Every: every, Choices: nodes.Choices(), Nodes: nodes}
	return s
}

// underFaults runs a sheet, and returns the journals and the list of faults.
func underFaults(t *testing.T, b *bench, s Sheet) (map[string][]byte, []faultlog.Fault, SheetResult) {
	t.Helper()
	shown := 0
	res, err := Run(t.Context(), RunConfig{
		Kernel: b.kernel, Dir: t.TempDir(), Sheets: []Sheet{s}, Executable: b.executable, Drivers: b.drivers, Trust: trusted, Seed: 1, Jobs: 1,
		Fault: func(string, faultlog.Fault) { shown++ },
	})
	if err != nil || res.Sheets[0].Err != nil {
		t.Fatal(err, res.Sheets[0].Err)
	}
	r := res.Sheets[0]
	files := map[string][]byte{}
	read := func(name, path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
		return data
	}
	for role, path := range r.Journals {
		read(string(role), path)
	}
	list, err := faultlog.Read(bytes.NewReader(read("faults", r.Faults)))
	if err != nil {
		t.Fatal(err)
	}
	if shown < len(list) {
		t.Errorf("%d lines of %d faults were on the console", shown, len(list))
	}
	return files, list, r
}

// The same seed and sheet give the same faults and the same journals, byte for byte, and
// no fault is a property of a protocol.
func TestFaultsRepeat(t *testing.T) {
	b := newBench(t)
	n := line(1e6, 5*time.Millisecond, uniform(0.01))
	s := faulty(t, b.named(t, plan(t, "faulty", n, 256<<10, 3, "tcp-cubic", "udt")), 7, 3*time.Second)
	first, list, r := underFaults(t, b, s)
	second, _, _ := underFaults(t, b, s)
	if len(list) < 5 || len(first) != 4 {
		t.Errorf("%d faults and %d files, expected more", len(list), len(first))
	}
	for name, data := range first {
		if !bytes.Equal(data, second[name]) {
			t.Errorf("%s differs between two runs of one seed: %s", name, difference(data, second[name]))
		}
	}
	if r.Ended != r.Trials {
		t.Errorf("%d of %d trials have ended", r.Ended, r.Trials)
	}
	hit := 0
	for _, e := range attempts(t, r.Journals[radio.RoleClient]) {
		switch {
		case e.Verdict == journal.Succeeded:
		case e.Verdict == journal.Invalid && journal.ApparatusFault(e.Reason), e.Verdict == journal.Aborted:
			hit++
		default:
			t.Errorf("a fault of the apparatus counts: %s", value(e))
		}
	}
	if hit == 0 {
		t.Error("no attempt was hit by a fault")
	}
	for _, f := range list {
		if f.Error != "" {
			b, _ := json.Marshal(f)
			t.Errorf("a fault could not be injected: %s", b)
		}
	}
}

// difference is the first line that differs.
func difference(a, b []byte) string {
	la, lb := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(la), len(lb)) {
		if !bytes.Equal(la[i], lb[i]) {
			return string(la[i][:min(len(la[i]), 400)]) + " | " + string(lb[i][:min(len(lb[i]), 400)])
		}
	}
	return "one is longer"
}
