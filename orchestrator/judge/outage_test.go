package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// marked is the only mark that an attempt gets for what a node recorded.
func marked(t *testing.T, n *node, a Attempt) *Mark {
	t.Helper()
	found := Outages(sheet(), n.out)
	var out []*Mark
	for i := range found.All {
		if x := &found.All[i]; x.Stopped {
			out = append(out, found.DuringStop(x, []Attempt{a})...)
		}
	}
	if len(out) == 0 && !a.Succeeded {
		out = found.Failures([]Attempt{a})
	}
	if len(out) == 0 {
		return nil
	}
	require.Len(t, out, 1)
	return out[0]
}

func listener(treatment string, outside bool) journal.Listener {
	return journal.Listener{Treatment: treatment, Code: "internal", Message: "gone", Outside: outside}
}

// An attempt that failed while its listener was not in order is marked; one that failed at
// another time, or because of its driver, is not.
func TestOutages(t *testing.T) {
	for name, c := range map[string]struct {
		server func(j *node) // after 10 s of the run
		mark   string        // empty: none
		well   bool          // the transfer succeeds
	}{
		"nothing": {func(*node) {}, "", false},
		"its port is taken": {func(j *node) {
			l := listener("one", true)
			l.Code, l.Message = contract.CodeListenFailed, "port 5001 is held by python3 (process 7)"
			j.Add(journal.TypeListenerFailed, l)
		}, "the listener of one at the server was not up at 12:00:10.0 UTC: port 5001 is held by python3 (process 7) (the attempt had ended with reset)", false},
		"its driver refused": {func(j *node) {
			l := listener("one", false)
			l.Code, l.Message = contract.CodeBadParameters, "local.address"
			j.Add(journal.TypeListenerFailed, l)
		}, "the listener of one at the server refused its parameters at 12:00:10.0 UTC: local.address (the attempt had ended with reset)", false},
		"another treatment's": {func(j *node) { j.Add(journal.TypeListenerFailed, listener("two", true)) }, "", false},
		"by itself":           {func(j *node) { j.Add(journal.TypeListenerFailed, listener("one", false)) }, "", false},
		"before": {func(j *node) {
			j.Pass(-5 * time.Second)
			j.Add(journal.TypeListenerFailed, listener("one", true))
			j.Add(journal.TypeListenerReady, listener("one", false))
		}, "", false},
		"agent away": {func(j *node) {
			j.Pass(3 * time.Second)
			j.Add(journal.TypeRunResumed, journal.RunStarted{})
		}, "the agent of the server was not running from 12:00:00.0 UTC to 12:00:13.0 UTC (the attempt had ended with reset)", false},
		"agent away later, as it knows": {func(j *node) {
			j.Pass(9 * time.Second)
			j.Add(journal.TypeRunResumed, journal.RunStarted{Alive: begin.Add(16 * time.Second)})
		}, "", false},
		"agent stopped": {func(j *node) {
			j.Pass(3 * time.Second)
			j.Add(journal.TypeAgentStopped, journal.AgentStopped{From: begin.Add(11 * time.Second), To: begin.Add(13 * time.Second)})
		}, "the agent of the server did not run from 12:00:11.0 UTC to 12:00:13.0 UTC (the attempt had ended with a result)", true},
		"the radio's interface down, and the attempt failed": {func(j *node) {
			j.Pass(500 * time.Millisecond)
			j.Add(journal.TypeInterfaceFailed, journal.RadioInterface{Device: "radio0", Fault: "it is down"})
		}, "the radio's interface radio0 of the server was not in order at 12:00:10.5 UTC: it is down (the attempt had ended with reset)", false},
		"the radio's interface down for a time, and the transfer succeeded": {func(j *node) {
			j.Pass(500 * time.Millisecond)
			j.Add(journal.TypeInterfaceFailed, journal.RadioInterface{Device: "radio0", Fault: "it is down"})
			j.Pass(100 * time.Millisecond)
			j.Add(journal.TypeInterfaceReady, journal.RadioInterface{Device: "radio0"})
		}, "the radio's interface radio0 of the server was not in order at 12:00:10.5 UTC: it is down (the attempt had ended with a result)", true},
		"another radio's interface in order again": {func(j *node) {
			j.Pass(500 * time.Millisecond)
			j.Add(journal.TypeInterfaceFailed, journal.RadioInterface{Device: "radio1", Fault: "it is down"})
			j.Pass(-5 * time.Second)
			j.Add(journal.TypeInterfaceFailed, journal.RadioInterface{Device: "radio0", Fault: "it is down"})
			j.Pass(100 * time.Millisecond)
			j.Add(journal.TypeInterfaceReady, journal.RadioInterface{Device: "radio0"})
		}, "the radio's interface radio1 of the server was not in order at 12:00:10.5 UTC: it is down (the attempt had ended with reset)", false},
		"the radio's interface down before": {func(j *node) {
			j.Pass(-5 * time.Second)
			j.Add(journal.TypeInterfaceFailed, journal.RadioInterface{Device: "radio0", Fault: "it is down"})
			j.Pass(time.Second)
			j.Add(journal.TypeInterfaceReady, journal.RadioInterface{Device: "radio0"})
		}, "", false},
		"the radio's interface down until the agent was started again, before": {func(j *node) {
			j.Pass(-8 * time.Second)
			j.Add(journal.TypeInterfaceFailed, journal.RadioInterface{Device: "radio0", Fault: "it is down"})
			j.Pass(time.Second)
			j.Add(journal.TypeRunResumed, journal.RunStarted{})
			j.Add(journal.TypeListenerReady, listener("one", false))
			j.Add(journal.TypeListenerReady, listener("two", false))
		}, "", false},
		"agent stopped afterwards": {func(j *node) {
			j.Pass(4 * time.Second)
			j.Add(journal.TypeAgentStopped, journal.AgentStopped{From: begin.Add(12 * time.Second), To: begin.Add(13 * time.Second)})
		}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{role: radio.RoleServer, at: begin.Add(50 * time.Millisecond), before: begin.Add(52 * time.Millisecond)}
			n.Pass(10 * time.Second)
			c.server(n)
			m := marked(t, n, attempt(c.well))
			if c.mark == "" {
				require.Nil(t, m)
				return
			}
			repeat := !strings.Contains(name, "refused") // another attempt would be refused as well
			require.Equal(t, &Mark{0, 1, c.mark, repeat}, m)
		})
	}
}

// What a relay whose kernel forwards packets does to them is known from its own journal: its
// radio's interface was not in order, or its agent was not running, so that nobody knows
// whether its node had power. An attempt that failed then says nothing of the protocol; one
// that succeeded does where only the agent was away. In an emulated network relays forward
// within the emulator, and neither matters.
func TestOutagesOfAForwardingRelay(t *testing.T) {
	forwards := true
	down := func(j *node) {
		j.Pass(200 * time.Millisecond)
		j.Add(journal.TypeInterfaceFailed, journal.RadioInterface{Device: "radio0", Forwards: forwards, Fault: "it is down"})
		j.Pass(300 * time.Millisecond)
		j.Add(journal.TypeInterfaceReady, journal.RadioInterface{Device: "radio0"})
	}
	away := func(j *node) {
		j.Pass(4 * time.Second)
		j.Add(journal.TypeRunResumed, journal.RunStarted{Forwards: forwards, Alive: begin.Add(10 * time.Second)})
	}
	for name, c := range map[string]struct {
		relay   func(j *node) // after 10 s of the run
		verdict journal.Verdict
		mark    string // empty: none
	}{
		"nothing":                  {func(*node) {}, journal.Failed, ""},
		"interface down, failed":   {down, journal.Failed, "the radio's interface radio0 of the relay was not in order at 12:00:10.2 UTC: it is down (the attempt had ended with reset)"},
		"agent away, failed":       {away, journal.Failed, "the agent of the relay was not running from 12:00:10.0 UTC to 12:00:14.0 UTC (the attempt had ended with reset)"},
		"emulated, interface down": {down, journal.Failed, ""},
		"emulated, agent away":     {away, journal.Failed, ""},
		"agent stopped, failed": {func(j *node) {
			j.Pass(time.Second)
			j.Add(journal.TypeAgentStopped, journal.AgentStopped{From: begin.Add(10 * time.Second), To: begin.Add(11 * time.Second)})
		}, journal.Failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			forwards = !strings.HasPrefix(name, "emulated")
			n := &node{role: radio.RoleRelay, at: begin.Add(30 * time.Millisecond), before: begin.Add(32 * time.Millisecond)}
			n.Pass(10 * time.Second)
			c.relay(n)
			m := marked(t, n, attempt(c.verdict == journal.Succeeded))
			if c.mark == "" {
				require.Nil(t, m)
				return
			}
			require.Equal(t, &Mark{0, 1, c.mark, true}, m)
		})
	}
}

// A success that the server does not confirm is marked once it is certain that no
// confirmation follows: the outage ended after the attempt, or the server went on.
func TestUnconfirmed(t *testing.T) {
	n := &node{role: radio.RoleServer, at: begin.Add(10500 * time.Millisecond)}
	n.Add(journal.TypeListenerFailed, listener("one", true))
	reason := "the listener of one at the server was ended from outside at 12:00:10.5 UTC (the attempt had ended with a result that the server did not record)"
	check := func(final, want bool) {
		t.Helper()
		a := attempt(true)
		a.Final = final
		marks := Outages(sheet(), n.out).Unconfirmed([]Attempt{a})
		if !want {
			require.Empty(t, marks)
			return
		}
		require.Equal(t, []*Mark{{0, 1, reason, true}}, marks)
	}
	check(false, false) // it lasts
	check(true, true)
	lasting := n.out
	n.Pass(200 * time.Millisecond)
	n.Add(journal.TypeListenerReady, listener("one", false))
	check(false, false) // it ended within the attempt
	check(true, true)
	n.out = lasting
	n.Pass(5 * time.Second)
	n.Add(journal.TypeListenerReady, listener("one", false))
	check(false, true)
}
