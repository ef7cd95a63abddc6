package judge

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// begin is when the test's run began, by the nodes' clocks.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ahead is the orchestrator's clock less the nodes'.
var ahead = Clock{Offset: 2 * time.Millisecond, Bound: time.Millisecond}

// attempt is the first attempt of the test's first trial: it begins after 10 s of the run
// and takes 1.2 s.
func attempt(succeeded bool) Attempt {
	a := Attempt{Number: 1, Started: begin.Add(10050 * time.Millisecond), Lasted: 1200 * time.Millisecond, Clock: ahead, Succeeded: succeeded, Last: true}
	if !succeeded {
		a.Reason = "reset"
	}
	return a
}

// sheet has two trials, of two treatments.
func sheet() *runsheet.Sheet {
	s := &runsheet.Sheet{
		Network: &radio.Network{MTUBytes: 1500},
		Topology: radio.Topology{Stations: []radio.Station{
			{Name: "a", Role: radio.RoleClient}, {Name: "b", Role: radio.RoleRelay}, {Name: "c", Role: radio.RoleServer}}},
	}
	for i, name := range []string{"one", "two"} {
		s.Treatments = append(s.Treatments, runsheet.Treatment{Name: name, Protocol: "test", Port: 5001 + i})
		s.Trials = append(s.Trials, runsheet.Trial{Index: i, Treatment: name,
			Flows: []runsheet.Flow{{Treatment: name, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1000}}})
	}
	return s
}

// node writes what a node records, 10 ms after the record before.
type node struct {
	role   radio.Role
	at     time.Time // by its clock
	before time.Time
	out    []Record
}

func (n *node) Pass(d time.Duration) { n.at = n.at.Add(d) }

func (n *node) Add(typ journal.Type, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	n.Pass(10 * time.Millisecond)
	at := n.at.Add(ahead.Offset)
	n.out = append(n.out, Record{Node: string(n.role), Role: n.role, At: at, Clock: ahead, Type: typ, Body: b, Before: n.before})
	n.before = at
}

// A mark asks for another attempt where none follows by itself, until there were enough,
// and its reason is one that campaigns accept.
func TestMark(t *testing.T) {
	for _, c := range []struct {
		last, again bool
		marks       int64
		want        bool
	}{{true, true, 0, true}, {true, true, 9, true}, {true, true, 10, false}, {false, true, 0, false}, {true, false, 0, false}} {
		a := Attempt{Trial: 3, Number: 2, Last: c.last, Marks: c.marks}
		require.Equal(t, &Mark{3, 2, "rain (the attempt had ended with a result)", c.want}, a.mark("rain", a.ended(), c.again), c)
	}
	a := attempt(false)
	reason := a.mark(strings.Repeat("ü", 800), a.ended(), true).Reason
	require.LessOrEqual(t, len(reason), 1000)
	require.Contains(t, reason, "ü… (the attempt had ended with reset)")
}
