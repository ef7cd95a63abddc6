package netns

import (
	"encoding/json"
	"strings"
	"testing"

	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// FuzzParseState: a lab's state names nothing that is not a lab's: what it names is
// removed.
func FuzzParseState(f *testing.F) {
	b, err := json.Marshal(State{Name: "lab", Owner: process.Identity{PID: 5, StartTicks: 6}, Children: []process.Identity{{PID: 7, StartTicks: 8}},
		Nodes:   []NodeState{{Role: radio.RoleClient, Namespace: prefix + "lab-client", RadioAddress: "10.77.0.1"}},
		Control: prefix + "lab-control", ControlSocket: "/run/x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"name":"lab","control":"lt-/../../etc/passwd"}`))
	f.Add([]byte(`{"name":"lab","nodes":[{"namespace":"other"}]}`))
	f.Add([]byte(`{"name":"../x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseState(b, "lab")
		if err != nil {
			return
		}
		if s.Name != "lab" {
			t.Fatalf("lab %q", s.Name)
		}
		names := []string{s.Control}
		for _, n := range s.Nodes {
			names = append(names, n.Namespace)
		}
		for i, name := range names {
			if i == 0 && name == "" {
				continue
			}
			if !strings.HasPrefix(name, prefix) || strings.ContainsAny(name, "/.\x00\n") {
				t.Fatalf("namespace %q", name)
			}
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseState(again, "lab"); err != nil {
			t.Fatalf("%s is not read again: %v", again, err)
		}
	})
}
