package installation

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// moment is what a machine has on its disk at one moment of a start.
type moment struct {
	after   string
	files   map[string]string
	enabled []string
}

// TestPowerIsLost: wherever the power is lost in a start, and whatever a boot has made of the
// units that were enabled, the next start ends as the first one would have.
func TestPowerIsLost(t *testing.T) {
	agent := AgentSettings{Orchestrator: "https://127.0.0.1:7700", Name: "alpha", Role: "client", Token: "first"}
	machine, m := installed(t)
	before := moment{"nothing", files(t, machine), nil}
	all := []moment{before}
	look := func(after string) {
		now := moment{after, files(t, machine), nil}
		for name, u := range m.units {
			if u.Enabled {
				now.enabled = append(now.enabled, name)
			}
		}
		all = append(all, between(all[len(all)-1], now)...)
		all = append(all, now)
	}
	m.looks = look
	if err := machine.StartOrchestrator(t.Context(), OrchestratorSettings{}, nil); err != nil {
		t.Fatal(err)
	}
	ready := func(context.Context) error { look("the agent is connected"); return nil }
	if err := machine.StartAgent(t.Context(), agent, ready); err != nil {
		t.Fatal(err)
	}
	look("the token is forgotten")
	end := all[len(all)-1]
	var names []string
	for _, x := range all {
		names = append(names, x.after)
	}
	// A test that looks at too few moments would not notice.
	if want := []string{"enable orchestrator", "start orchestrator", "agent.env", "token", "enable agent", "start agent", "the agent is connected", "the token is forgotten"}; !containsAll(names, want) {
		t.Fatalf("%q, expected among them %q", names, want)
	}

	for _, x := range all {
		for _, boot := range []string{"inactive", "active", "failed"} {
			machine, m := installed(t)
			for name, text := range x.files {
				write(t, machine.at(filepath.Join("/etc/linktrial", name)), text)
			}
			write(t, machine.at("/etc/linktrial/.new-4711"), "LINKTR")
			joining := machine.NodeState("beta" + JoiningSuffix)
			if err := os.MkdirAll(joining, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(joining, "key"), "half a k")
			for _, name := range x.enabled {
				m.units[name] = Unit{Loaded: true, Enabled: true, Active: boot}
			}
			again := agent
			again.Token = "second"
			err := machine.StartOrchestrator(t.Context(), OrchestratorSettings{}, nil)
			if err == nil {
				err = machine.StartAgent(t.Context(), again, nil)
			}
			if err != nil {
				t.Errorf("after %s, %s: %v", x.after, boot, err)
			}
			if got := files(t, machine); !maps.Equal(got, end.files) {
				t.Errorf("after %s, %s: %q, expected %q", x.after, boot, got, end.files)
			}
			for name, u := range m.units {
				if !u.Enabled || u.Active != "active" {
					t.Errorf("after %s, %s: %s is %+v", x.after, boot, name, u)
				}
			}
			if _, err := os.Stat(joining); !os.IsNotExist(err) {
				t.Errorf("after %s, %s: %s is left: %v", x.after, boot, joining, err)
			}
		}
	}
}

// between are the moments between two, of which the second has several other files: the disk
// may have got any one of them first.
func between(a, b moment) (out []moment) {
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(b.files)) {
		if was, there := a.files[name]; !there || was != b.files[name] {
			changed = append(changed, name)
		}
	}
	for name := range a.files {
		if _, there := b.files[name]; !there {
			changed = append(changed, name)
		}
	}
	for _, name := range changed {
		one := maps.Clone(a.files)
		if text, there := b.files[name]; there {
			one[name] = text
		} else {
			delete(one, name)
		}
		out = append(out, moment{name, one, a.enabled})
	}
	return out
}

func containsAll(all, want []string) bool {
	at := 0
	for _, name := range all {
		if at < len(want) && strings.Contains(name, want[at]) {
			at++
		}
	}
	return at == len(want)
}
