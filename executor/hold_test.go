package executor

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/protocols/contract"
)

// What the other end sends must come over the radio. Found on a pair of cables: the
// server's answers took a wired network beside the radio, and ten trials counted whose
// acknowledgements never saw the radio.
func TestAnswersThatTakeAnotherWay(t *testing.T) {
	for name, c := range map[string]struct {
		readings []int64 // one each attempt before and after it, and while it is waited for
		attempts int
	}{
		"over the radio":              {[]int64{7000, 7100}, 1},
		"past it, and then over it":   {append(append([]int64{7000}, slices.Repeat([]int64{7084}, 13)...), 7084, 8000), 2},
		"counted late":                {[]int64{7000, 7000, 7000, 7500}, 1},
		"a counter of another device": {[]int64{7000, 10}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
				defer j.Close()
				cfg := config(testSheet(t, 1, 3), j, &scripted{}, &fakeRadio{})
				left := c.readings
				cfg.Received = func() (int64, error) {
					b := left[0]
					left = left[min(1, len(left)-1):]
					return b, nil
				}
				require.NoError(t, Lead(context.Background(), cfg))
				want := []string{"start 0/1", "end 0/1 succeeded", "trial 0 succeeded", "run completed"}
				if c.attempts == 2 {
					want = []string{"start 0/1", "end 0/1 invalid radio-down", "start 0/2", "end 0/2 succeeded", "trial 0 succeeded", "run completed"}
				}
				sameStory(t, j, want...)
			})
		})
	}
}

// fakeTimes are packets' times that a test gives.
type fakeTimes struct {
	sent       []PacketsTook
	whole      map[int]time.Duration
	begin, end error
	payloads   []map[int]Payloads
	answered   []int64 // at each call; an error when there are no more
}

func (f *fakeTimes) Answered(int) (int64, error) {
	if len(f.answered) == 0 {
		return 0, errors.New("no map")
	}
	n := f.answered[0]
	f.answered = f.answered[1:]
	return n, nil
}

func (f *fakeTimes) Begin(payloads map[int]Payloads) error {
	f.payloads = append(f.payloads, payloads)
	return f.begin
}

func (f *fakeTimes) Took() ([]PacketsTook, map[int]time.Duration, error) {
	return f.sent, f.whole, f.end
}

// Over real radios a transfer of 100 ms is held against the packets that left this node
// for its listener, where they are known.
func TestTimesAreHeldAgainstPackets(t *testing.T) {
	const ms = time.Millisecond
	const port = 5001 // of the sheet
	for name, c := range map[string]struct {
		times fakeTimes
		valid bool
	}{
		"as long":              {fakeTimes{sent: []PacketsTook{{Port: port, Bytes: 2000, Took: 100 * ms}}}, true},
		"longer":               {fakeTimes{sent: []PacketsTook{{Port: port, Bytes: 2000, Took: 110 * ms}}}, false},
		"one left from before": {fakeTimes{sent: []PacketsTook{{Port: port, Bytes: 2000, Took: 110 * ms}, {Port: port, Bytes: 2000, Took: 90 * ms}}}, true},
		"fewer bytes":          {fakeTimes{sent: []PacketsTook{{Port: port, Bytes: 500}}}, true},
		"divided":              {fakeTimes{sent: []PacketsTook{{Port: port, Bytes: 500}, {Port: port, Bytes: 500}}, whole: map[int]time.Duration{port: 110 * ms}}, false},
		"connecting is longer": {fakeTimes{sent: []PacketsTook{{Port: port, Bytes: 2000, Took: 100 * ms, Connecting: time.Hour}}}, false},
		"another listener's":   {fakeTimes{sent: []PacketsTook{{Port: port + 1, Bytes: 2000, Took: 110 * ms}}}, true},
		"none":                 {fakeTimes{}, true},
		"not begun":            {fakeTimes{begin: errors.New("no radio"), sent: []PacketsTook{{Port: port, Bytes: 2000, Took: 110 * ms}}}, true},
		"not known":            {fakeTimes{end: errors.New("no map"), sent: []PacketsTook{{Port: port, Bytes: 2000, Took: 110 * ms}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
				defer j.Close()
				cfg := config(testSheet(t, 1, 3), j, &scripted{}, &fakeRadio{})
				cfg.PacketsSent = &c.times
				require.NoError(t, Lead(context.Background(), cfg))
				want := []string{"start 0/1", "end 0/1 succeeded", "trial 0 succeeded", "run completed"}
				if !c.valid {
					want = []string{"start 0/1", "end 0/1 invalid faster-than-packets", "trial 0 invalid", "run completed"}
				}
				sameStory(t, j, want...)
				require.Equal(t, []map[int]Payloads{{port: {1000, 1000}}}, c.times.payloads)
			})
		})
	}
}

// Of several flows those are held against packets that start on this node and carry a
// payload of a size, to a listener with no others.
func TestWhichFlowsAreHeldAgainstPackets(t *testing.T) {
	sheet, err := runsheet.Decode(testSheet(t, 1, 1))
	require.NoError(t, err)
	client, relay, server := radio.RoleClient, radio.RoleRelay, radio.RoleServer
	a := runsheet.Flow{Treatment: "a", From: client, To: server, SizeBytes: 1000}
	b := runsheet.Flow{Treatment: "b", From: client, To: server, SizeBytes: 2000}
	timed, elsewhere, answers, smaller := b, b, b, b
	smaller.SizeBytes = 500
	timed.Duration, timed.SizeBytes = time.Second, 0
	elsewhere.From = relay
	answers.From, answers.To = server, client
	for name, c := range map[string]struct {
		flows  []runsheet.Flow
		client map[int]Payloads
		relay  map[int]Payloads
	}{
		"two listeners":           {[]runsheet.Flow{a, b}, map[int]Payloads{5001: {1000, 1000}, 5002: {2000, 2000}}, nil},
		"one listener":            {[]runsheet.Flow{a, b, smaller}, map[int]Payloads{5001: {1000, 1000}, 5002: {500, 2500}}, nil},
		"one that a time ends":    {[]runsheet.Flow{a, timed}, map[int]Payloads{5001: {1000, 1000}}, nil},
		"one of two is timed":     {[]runsheet.Flow{a, b, timed}, map[int]Payloads{5001: {1000, 1000}}, nil},
		"one of another node":     {[]runsheet.Flow{a, elsewhere}, map[int]Payloads{5001: {1000, 1000}}, map[int]Payloads{5002: {2000, 2000}}},
		"one that the server has": {[]runsheet.Flow{a, answers}, map[int]Payloads{5001: {1000, 1000}}, nil},
		"none":                    {[]runsheet.Flow{timed}, nil, nil},
	} {
		sheet.Trials[0].Flows = c.flows
		for role, want := range map[radio.Role]map[int]Payloads{client: c.client, relay: c.relay} {
			times := &fakeTimes{}
			n := newNode(Config{RunID: "r", Role: role, PacketsSent: times}, sheet)
			own, _ := split(newFlows(n, 0, 1), role)
			n.timePackets(own)
			var got map[int]Payloads
			if len(times.payloads) > 0 {
				got = times.payloads[0]
			}
			require.Equal(t, want, got, "%s, %s", name, role)
		}
	}
}

// Over real radios what probes from the server say has arrived is held against the packets
// that came from their listener, of one direction and of one listener all together.
func TestProbesFromTheServerHaveThePacketsThatCame(t *testing.T) {
	sheet, err := runsheet.Decode(testSheet(t, 1, 1))
	require.NoError(t, err)
	there := runsheet.Flow{Treatment: "a", From: radio.RoleClient, To: radio.RoleServer}
	back := runsheet.Flow{Treatment: "a", From: radio.RoleServer, To: radio.RoleClient}
	for name, c := range map[string]struct {
		probes   []runsheet.Flow
		answered []int64
		invalid  bool
	}{
		"as many as came":      {[]runsheet.Flow{back}, []int64{7, 107}, false},
		"more than came":       {[]runsheet.Flow{back}, []int64{7, 106}, true},
		"two, as many as came": {[]runsheet.Flow{back, back}, []int64{7, 207}, false},
		"two, more than came":  {[]runsheet.Flow{back, back}, []int64{7, 206}, true},
		"the other direction":  {[]runsheet.Flow{there}, []int64{7, 7}, false},
		"not known before":     {[]runsheet.Flow{back}, nil, false},
		"not known after":      {[]runsheet.Flow{back}, []int64{7}, false},
	} {
		sheet.Trials[0].Flows, sheet.Trials[0].Probes = nil, c.probes
		n := newNode(Config{RunID: "r", Role: radio.RoleClient, PacketsSent: &fakeTimes{answered: c.answered}}, sheet)
		flows := newFlows(n, 0, 1)
		hold := n.countAnswers(flows)
		for _, f := range flows {
			f.result.Verdict, f.result.Result = journal.Succeeded, &contract.Result{Probe: &contract.ProbeMetrics{Received: 100}}
		}
		hold()
		for _, f := range flows {
			require.Equal(t, c.invalid, f.result.Verdict == journal.Invalid && f.result.Reason == journal.ReasonMoreThanSent, name)
			require.Equal(t, c.invalid, strings.Contains(f.result.Message, "from its listener"), name)
		}
	}
}

// Every client reports 1000 bytes in 100 ms. Each rule that this breaks makes the
// attempt invalid, what was reported stays in the journal, and no other attempt
// follows although the sheet allows three.
func TestValuesAreHeldAgainstWhatWasSeen(t *testing.T) {
	counter := func(readings ...int64) func() (int64, error) {
		return func() (int64, error) {
			b := readings[0]
			if len(readings) > 1 {
				readings = readings[1:]
			}
			if b < 0 {
				return 0, errors.New("no such device")
			}
			return b, nil
		}
	}
	hops := func(bytes int64) []radiocontrol.Hop {
		return []radiocontrol.Hop{{From: radio.RoleClient, To: radio.RoleRelay, DeliveredBytes: bytes}, {From: radio.RoleRelay, To: radio.RoleServer, DeliveredBytes: 5000}}
	}
	for name, c := range map[string]struct {
		sent   func() (int64, error)
		radio  *fakeRadio
		reason string
		words  []string
	}{
		"all true":                         {counter(500, 1600), &fakeRadio{hops: hops(1200), ideal: []time.Duration{90 * time.Millisecond}}, "", nil},
		"nothing known":                    {nil, &fakeRadio{}, "", nil},
		"more than the interface sent":     {counter(500, 1499), &fakeRadio{}, journal.ReasonMoreThanSent, []string{"1000 bytes", "999 bytes"}},
		"a counter that is updated late":   {counter(500, 500, 600, 1600), &fakeRadio{}, "", nil},
		"a counter that cannot be read":    {counter(500, -1), &fakeRadio{}, "", nil},
		"a counter of another device":      {counter(5000, 10), &fakeRadio{}, "", nil},
		"more than the radio delivered":    {nil, &fakeRadio{hops: hops(990)}, journal.ReasonMoreThanSent, []string{"1000 bytes", "990 bytes", "client to relay"}},
		"faster than Ideal":                {nil, &fakeRadio{ideal: []time.Duration{2 * time.Second}}, journal.ReasonFasterThanIdeal, []string{"2.000 s"}},
		"an Ideal that is of other flows":  {nil, &fakeRadio{ideal: []time.Duration{2 * time.Second, time.Second}}, "", nil},
		"the radio's Ideal does not exist": {nil, &fakeRadio{ideal: []time.Duration{0}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
				defer j.Close()
				cfg := config(testSheet(t, 1, 3), j, &scripted{}, c.radio)
				cfg.Sent = c.sent
				if err := Lead(context.Background(), cfg); err != nil {
					t.Fatal(err)
				}
				var ended []journal.AttemptEnded
				for _, r := range read(t, j) {
					if r.Type == journal.TypeAttemptEnded {
						ended = append(ended, body[journal.AttemptEnded](t, r))
					}
				}
				if len(ended) != 1 {
					t.Fatalf("%d attempts, expected 1", len(ended))
				}
				verdict := journal.Succeeded
				if c.reason != "" {
					verdict = journal.Invalid
				}
				e := ended[0]
				if e.Verdict != verdict || e.Reason != c.reason || e.Flows[0].Verdict != verdict || e.Flows[0].Result == nil || e.Flows[0].Result.SizeBytes != 1000 {
					t.Errorf("attempt %+v, expected %s (%s) with the result", e, verdict, c.reason)
				}
				for _, w := range c.words {
					if !strings.Contains(e.Message, w) {
						t.Errorf("message %q does not have %q", e.Message, w)
					}
				}
			})
		})
	}
}
