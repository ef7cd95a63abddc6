package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
)

// What an attempt has of each node's control packets, and that it is marked for those at
// another node than the leading one.
func TestControl(t *testing.T) {
	of := func(from, to float64, traffic journal.ControlTraffic) journal.ControlCounted {
		at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
		return journal.ControlCounted{Since: at(from), Until: at(to), ControlTraffic: traffic}
	}
	forwarded := func(from, to float64, packets int64) journal.ControlCounted {
		return of(from, to, journal.ControlTraffic{Packets: packets, Bytes: 52 * packets, Others: packets, OthersBytes: 52 * packets})
	}
	counted := func(from, to float64, packets int64) journal.ControlCounted {
		return of(from, to, journal.ControlTraffic{Packets: packets, Bytes: 52 * packets})
	}
	silent := report.ControlCount{Role: radio.RoleServer}
	for name, c := range map[string]struct {
		server []journal.ControlCounted
		relay  []journal.ControlCounted // empty: silent
		want   report.ControlCount      // of the server
		passed report.ControlCount      // at the relay
		mark   string
	}{
		"silent":        {server: []journal.ControlCounted{counted(0, 5, 9), counted(5, 20, 0)}, want: report.ControlCount{Role: radio.RoleServer}},
		"before, after": {server: []journal.ControlCounted{counted(0, 9.8, 3), counted(9.8, 11.8, 0), counted(11.8, 12, 3)}, want: report.ControlCount{Role: radio.RoleServer}},
		"a gap":         {server: []journal.ControlCounted{counted(0, 10.5, 0), counted(11, 20, 0)}, want: report.ControlCount{Role: radio.RoleServer, Unknown: "the node did not count from 12:00:10.5 UTC on, or its journal is not there"}},
		"at the relay": {server: []journal.ControlCounted{counted(0, 20, 0)}, relay: []journal.ControlCounted{counted(0, 10.5, 0), counted(10.5, 10.7, 2), counted(10.7, 20, 0)}, want: silent,
			passed: report.ControlCount{Packets: 2, Bytes: 104}, mark: "2 control packets with 104 B passed at the relay, of which an attempt with in-band control has none (the attempt had ended with a result)"},
		// The leading node calls until the attempt and again after it: those are its own, and counted there.
		"forwarded about the attempt": {server: []journal.ControlCounted{counted(0, 20, 0)},
			relay: []journal.ControlCounted{counted(0, 9.9, 0), forwarded(9.9, 10.05, 6), counted(10.05, 11.15, 0), forwarded(11.15, 11.4, 6), counted(11.4, 20, 0)}, want: silent},
		"own about the attempt": {server: []journal.ControlCounted{counted(0, 20, 0)}, relay: []journal.ControlCounted{counted(0, 9.9, 0), counted(9.9, 10.05, 6), counted(10.05, 20, 0)}, want: silent,
			passed: report.ControlCount{Packets: 6, Bytes: 312}, mark: "6 control packets with 312 B passed at the relay, of which an attempt with in-band control has none (the attempt had ended with a result)"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.relay == nil {
				c.relay = []journal.ControlCounted{counted(0, 2, 7), counted(2, 20, 0)}
			}
			counter := func(role radio.Role, all []journal.ControlCounted) Counter {
				x := Counter{Role: role}
				for _, r := range all {
					x.Records = append(x.Records, Counted{ahead, r})
				}
				return x
			}
			others := Counters([]Counter{counter(radio.RoleServer, c.server), counter(radio.RoleRelay, c.relay)}, radio.Roles)
			a := attempt(true)
			a.Control = &journal.ControlTraffic{Packets: 1, Bytes: 60}
			counts, mark := Control(&a, others, false)
			c.passed.Role = radio.RoleRelay
			require.Equal(t, []report.ControlCount{{Role: radio.RoleClient, Packets: 1, Bytes: 60}, c.passed, c.want}, counts)
			if c.mark == "" {
				require.Nil(t, mark)
				return
			}
			require.Equal(t, &Mark{0, 1, c.mark, true}, mark)
		})
	}
}

// Where no agent takes part as a role of the topology, results say that nobody observed
// what passed there; of the others nothing is decided before their counts are there.
func TestControlUnobserved(t *testing.T) {
	others := Counters([]Counter{{Role: radio.RoleServer}, {Role: radio.RoleRelay}}, append([]radio.Role{"observer"}, radio.Roles...))
	require.Len(t, others, 3)
	for _, x := range others {
		c, complete := x.during(time.Unix(0, 0), time.Unix(1, 0), 0)
		require.Equal(t, x.Role == "observer", complete, x.Role)
		if x.Role == "observer" {
			require.Equal(t, "no node takes part in the run as the observer, so what passed there was not observed", c.Unknown)
		}
	}
	a := attempt(true)
	counts, _ := Control(&a, others, false)
	require.Nil(t, counts)
	counts, _ = Control(&a, others, true)
	require.Len(t, counts, 4)
}
