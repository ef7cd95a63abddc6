package guest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/internal/radio"
)

// FuzzParseJob: the files of every run are below the shared folder.
func FuzzParseJob(f *testing.F) {
	b, err := json.Marshal(Job{Sheets: []Sheet{{Run: "r-1", Network: &radio.Network{}}}, Trace: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"sheets":[{"run":"../x","network":{}}]}`))
	f.Add([]byte(`{"sheets":[{"run":"/x","network":{}}]}`))
	f.Add([]byte(`{"sheets":[{"run":"a"},null]}`))
	f.Add([]byte(`{"sheets":[],"vitals_ns":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := ParseJob(b)
		if err != nil {
			return
		}
		if j.Vitals < 0 {
			t.Fatalf("vitals every %s", j.Vitals)
		}
		for _, s := range j.Sheets {
			for _, at := range []string{s.File(), s.StateDir(radio.RoleClient)} {
				if !strings.HasPrefix(filepath.Join(ShareDir, at), ShareDir+"/") {
					t.Fatalf("run %q leads to %s", s.Run, at)
				}
			}
			if s.Network == nil {
				t.Fatal("a run without a network")
			}
		}
		again, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseJob(again); err != nil {
			t.Fatalf("%s is not read again: %v", again, err)
		}
	})
}

// FuzzParseAgent: what is taken can be written and is taken again, the same.
func FuzzParseAgent(f *testing.F) {
	b, err := json.Marshal(Agent{Name: "a", Role: radio.RoleServer, Run: "r-1", Sheet: "/run/lab/r-1/sheet.json", RadioAddress: "10.77.0.3", Place: Place, View: View{User: firstUser, Drivers: []string{"/usr/lib/linktrial/drivers"}, Keep: []string{radiosDir}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("{"))
	f.Add([]byte(`{"name":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := ParseAgent(line)
		if err != nil {
			return
		}
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseAgent(b)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := json.Marshal(again); err != nil || !bytes.Equal(b, c) {
			t.Fatalf("%s was %s: %v", c, b, err)
		}
	})
}

// FuzzParseCosts: what is taken is what was written.
func FuzzParseCosts(f *testing.F) {
	f.Add(Costs{"read": 7, "write": 1 << 40}.String())
	f.Add("{}")
	f.Add("null")
	f.Add(`{"read":1.5}`)
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCosts(s)
		if err != nil {
			return
		}
		again, err := ParseCosts(c.String())
		if err != nil || len(again) != len(c) {
			t.Fatalf("%v was %v: %v", again, c, err)
		}
		for k, v := range c {
			if again[k] != v {
				t.Fatalf("%q: %d was %d", k, again[k], v)
			}
		}
	})
}

// FuzzParseDrivers: what is taken can be written and is taken again, the same.
func FuzzParseDrivers(f *testing.F) {
	f.Add([]byte(`[{"name":"tcp","choices":{"congestion":["reno","cubic"]}},{"name":"sctp","unsupported":"no SCTP"}]`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ParseDrivers(b)
		if err != nil {
			return
		}
		written, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseDrivers(written)
		if err != nil {
			t.Fatal(err)
		}
		if rewritten, _ := json.Marshal(again); string(rewritten) != string(written) {
			t.Fatalf("%s was %s", rewritten, written)
		}
	})
}
