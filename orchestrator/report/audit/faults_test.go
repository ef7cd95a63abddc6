package audit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
)

// The times of a list lie around injection and end, so that only what remains of a fault
// within them was certainly in effect; of other kinds none makes a success invalid.
func TestInterfaceFault(t *testing.T) {
	began := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	x := &attempt{started: began, endedAt: began.Add(4 * time.Second), ended: true}
	for name, c := range map[string]struct {
		kind     faultlog.Kind
		from, to time.Duration
		found    bool
	}{
		"in the middle":             {faultlog.RadioDown, time.Second, 3 * time.Second, true},
		"around it":                 {faultlog.MTU, -time.Second, 6 * time.Second, true},
		"too short to be certain":   {faultlog.Address, time.Second, 2 * time.Second, false},
		"only with its last moment": {faultlog.RadioDown, 3800 * time.Millisecond, 9 * time.Second, false},
		"before it":                 {faultlog.RadioDown, -3 * time.Second, 400 * time.Millisecond, false},
		"of another kind":           {faultlog.Kill, time.Second, 3 * time.Second, false},
	} {
		f := faultlog.Fault{Kind: c.kind, From: began.Add(c.from), To: began.Add(c.to), Touches: true}
		require.Equal(t, c.found, interfaceFault([]faultlog.Fault{f}, x, 0) != nil, name)
		f.From, f.To = f.From.Add(time.Hour), f.To.Add(time.Hour)
		require.Equal(t, c.found, interfaceFault([]faultlog.Fault{f}, x, time.Hour) != nil, name)
	}
}

// An attempt begins before listeners and channel are waited for: an interface that is in order
// again when its transfers begin is nothing to it.
func TestInterfaceFaultBeforeTheTransfer(t *testing.T) {
	began := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	f := []faultlog.Fault{{Kind: faultlog.MTU, From: began.Add(-3 * time.Second), To: began.Add(time.Second), Touches: true}}
	for name, c := range map[string]struct {
		connects []time.Duration // when each of two flows began to connect
		found    bool
	}{
		"both after it":              {[]time.Duration{2 * time.Second, 3 * time.Second}, false},
		"one before its end":         {[]time.Duration{2 * time.Second, 400 * time.Millisecond}, true},
		"one that is not known":      {[]time.Duration{2 * time.Second}, true},
		"none that is known":         {nil, true},
		"just then, without a doubt": {[]time.Duration{500 * time.Millisecond, 500 * time.Millisecond}, false},
	} {
		h := &history{open: &attempt{trial: 3, number: 2, transfers: []string{"a", "b"}, started: began, endedAt: began.Add(4 * time.Second), ended: true}}
		for flow, at := range c.connects {
			h.connected(began.Add(at+170*time.Millisecond), &journal.Connected{Trial: 3, Attempt: 2, Flow: flow, ConnectNS: (170 * time.Millisecond).Nanoseconds()})
		}
		h.connected(began.Add(-time.Hour), &journal.Connected{Trial: 3, Attempt: 1}) // of another attempt
		require.Equal(t, c.found, interfaceFault(f, h.open, 0) != nil, name)
	}
}

// What happens to a process of a driver that no treatment of an attempt uses is nothing to
// that attempt.
func TestWhoseDriver(t *testing.T) {
	a := &auditor{sheet: &runsheet.Sheet{
		Treatments: []runsheet.Treatment{{Name: "one", Protocol: "tcp"}, {Name: "two", Protocol: "tcp", Via: []runsheet.Via{{Protocol: "split"}}}, {Name: "voice", Protocol: "probe"}},
		Trials:     []runsheet.Trial{{Flows: []runsheet.Flow{{Treatment: "one"}}, Probes: []runsheet.Flow{{Treatment: "voice"}}}, {Flows: []runsheet.Flow{{Treatment: "two"}}}},
	}}
	for trial, uses := range []map[string]bool{
		{"tcp": true, "probe": true, "split": false, "udt": false, "": true},
		{"tcp": true, "probe": false, "split": true, "udt": false, "": true},
	} {
		for driver, want := range uses {
			require.Equal(t, want, a.uses(&attempt{trial: trial}, driver), "trial %d, driver %q", trial, driver)
		}
	}
	require.True(t, a.uses(&attempt{trial: 7}, "udt"), "of a trial that is not in the sheet nothing is known")
}

// When a fault ended is noted after that was done: an attempt that the leading node's agent
// began meanwhile is not one that the fault's end, as the list has it, overlaps.
func TestOverBeforeTheAttempt(t *testing.T) {
	began := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	x := &attempt{started: began, endedAt: began.Add(4 * time.Second), ended: true}
	alone := []runsheet.Treatment{{Name: "one", Protocol: "tcp"}}
	carried := []runsheet.Treatment{{Name: "one", Protocol: "tcp", Via: []runsheet.Via{{Protocol: "split", At: radio.RoleClient}}}}
	for name, c := range map[string]struct {
		kind       faultlog.Kind
		target     faultlog.Target
		node       radio.Role
		from       time.Duration
		treatments []runsheet.Treatment
		overlaps   bool
	}{
		"the leader's power":                       {faultlog.PowerCut, faultlog.Node, radio.RoleClient, -4 * time.Second, alone, false},
		"the leader's power, just then":            {faultlog.PowerCut, faultlog.Node, radio.RoleClient, -400 * time.Millisecond, alone, true},
		"the leader's power, meanwhile":            {faultlog.PowerCut, faultlog.Node, radio.RoleClient, time.Millisecond, alone, true},
		"the server's power":                       {faultlog.PowerCut, faultlog.Node, radio.RoleServer, -4 * time.Second, alone, true},
		"a driver of an earlier attempt":           {faultlog.Stop, faultlog.Driver, radio.RoleClient, -4 * time.Second, alone, false},
		"a driver that may listen at the leader":   {faultlog.Stop, faultlog.Driver, radio.RoleClient, -4 * time.Second, carried, true},
		"the leader's agent":                       {faultlog.Stop, faultlog.Agent, radio.RoleClient, -4 * time.Second, alone, false},
		"the leader's interface, which stays down": {faultlog.RadioDown, faultlog.Radio, radio.RoleClient, -4 * time.Second, alone, true},
	} {
		a := &auditor{sheet: &runsheet.Sheet{Treatments: c.treatments}}
		f := faultlog.Fault{Kind: c.kind, Target: c.target, Node: string(c.node), From: began.Add(c.from), To: began.Add(time.Second), Touches: true}
		require.Equal(t, c.overlaps, a.overlapping([]faultlog.Fault{f}, x, 0) != nil, name)
	}
}
