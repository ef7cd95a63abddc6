package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
)

var threeNodes = Nodes{All: []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer}, Drivers: []radio.Role{radio.RoleClient, radio.RoleServer}}

func TestParse(t *testing.T) {
	s, err := Parse("f.yaml", []byte(`
faults:
  - {at: 45s, kind: stop, target: driver, node: client, driver: udt, for: 5s}
  - {at: 30s, kind: kill, target: agent, node: relay}
  - {at: 50s, kind: restart, target: orchestrator}
  - {at: 60s, kind: control-slow, node: client, for: 10s}
  - {at: 61s, kind: control-lossy, node: relay, for: 10s, loss: 0.5}
  - {at: 62s, kind: clock-step, node: server, for: 10s, step: -8760h}
  - {at: 63s, kind: clock-step, node: client, for: 10s}
random: {seed: 42, every: 10s, kinds: [kill, "stop:database"]}
`), threeNodes)
	require.NoError(t, err)
	require.Len(t, s.Faults, 7)
	var got []string
	for _, i := range s.Faults {
		got = append(got, i.At.String()+" "+i.String())
	}
	require.Equal(t, []string{"30s kill agent of relay", "45s stop driver udt of client for 5s", "50s restart orchestrator",
		"1m0s control-slow control-link of client by 2s for 10s", "1m1s control-lossy control-link of relay with loss 0.5 for 10s",
		"1m2s clock-step clock of server by -8760h0m0s for 10s", "1m3s clock-step clock of client by +1h0m0s for 10s"}, got)
	require.Equal(t, uint64(42), s.Random.Seed)
	require.Equal(t, 10*time.Second, s.Random.Every)
	require.True(t, s.Hits(faultlog.ControlLink))
	require.True(t, s.Hits(faultlog.Database), "drawn from the seed")
	require.False(t, s.Hits(faultlog.Disk))
	for range 200 {
		i, ok := s.Random.Next()
		require.True(t, ok)
		if i.Kind != faultlog.Kill {
			require.Equal(t, Choice{faultlog.Stop, faultlog.Database}, Choice{i.Kind, i.Target})
		}
	}
}

// Every mistake is said once, at its place.
func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":      {`{}`, `f.yaml:1:1: expected faults, random, or both`},
		"unknown kind": {`faults: [{at: 1s, kind: klil, target: agent, node: client}]`, `f.yaml:1:25: faults[0].kind: unknown "klil"; there are KINDS`},
		"no step":      {`faults: [{at: 1s, kind: clock-step, node: client, for: 1s, step: 0s}]`, `f.yaml:1:66: faults[0].step: expected 1ms to 87600h0m0s, forwards or with a minus sign back, found 0s`},
		"a long step":  {`faults: [{at: 1s, kind: clock-step, node: client, for: 1s, step: -87601h}]`, `f.yaml:1:66: faults[0].step: expected 1ms to 87600h0m0s, forwards or with a minus sign back, found -87601h0m0s`},
		"a step":       {`faults: [{at: 1s, kind: control-cut, node: client, for: 1s, step: 1h}]`, `f.yaml:1:67: faults[0].step: only clock-step can have one; remove it`},
		"no target":    {`faults: [{at: 1s, kind: kill, node: client}]`, `f.yaml:1:10: faults[0].target is missing`},
		"wrong target": {`faults: [{at: 1s, kind: kill, target: radio, node: client}]`, `f.yaml:1:39: faults[0].target: unknown "radio"; there are TARGETS`},
		"no node":      {`faults: [{at: 1s, kind: kill, target: agent}]`, `f.yaml:1:10: faults[0].node is missing`},
		"no such node": {`faults: [{at: 1s, kind: kill, target: driver, node: relay}]`, `f.yaml:1:53: faults[0].node: unknown "relay"; there are client, server`},
		"a node":       {`faults: [{at: 1s, kind: kill, target: database, node: client}]`, `f.yaml:1:55: faults[0].node: the target database is not one of a node; remove it`},
		"no end":       {`faults: [{at: 1s, kind: stop, target: database}]`, `f.yaml:1:10: faults[0].for is missing`},
		"an end":       {`faults: [{at: 1s, kind: kill, target: database, for: 1s}]`, `f.yaml:1:54: faults[0].for: kill is done at once; remove it`},
		"too long":     {`faults: [{at: 1s, kind: stop, target: database, for: 25h}]`, `f.yaml:1:54: faults[0].for: expected 1ms to 24h0m0s, found 25h0m0s`},
		"too late":     {`faults: [{at: 721h, kind: kill, target: database}]`, `f.yaml:1:15: faults[0].at: expected 0s to 720h0m0s, found 721h0m0s`},
		"a driver":     {`faults: [{at: 1s, kind: kill, target: agent, node: client, driver: tcp}]`, `f.yaml:1:68: faults[0].driver: only the target driver has one; remove it`},
		"a delay":      {`faults: [{at: 1s, kind: control-cut, node: client, for: 1s, delay: 1s}]`, `f.yaml:1:68: faults[0].delay: only control-slow and disk-slow can have one; remove it`},
		"long delay":   {`faults: [{at: 1s, kind: control-slow, node: client, for: 1s, delay: 61s}]`, `f.yaml:1:69: faults[0].delay: expected 1ms to 1m0s, found 1m1s`},
		"much loss":    {`faults: [{at: 1s, kind: control-lossy, node: client, for: 1s, loss: 30}]`, `f.yaml:1:69: faults[0].loss: expected a number from 0.001 to 1, found "30"`},
		"an overlap": {"faults:\n- {at: 5s, kind: kill, target: database}\n- {at: 1s, kind: stop, target: database, for: 5s}",
			`f.yaml:2:3: faults[0]: begins at 5s, while the fault of line 3, which hits the same, lasts until 6s`},
		"no seed":    {`random: {every: 1s}`, `f.yaml:1:9: random.seed is missing`},
		"too often":  {`random: {seed: 1, every: 1ms}`, `f.yaml:1:26: random.every: expected 100ms to 24h0m0s, found 1ms`},
		"wrong kind": {`random: {seed: 1, kinds: ["kill:radio"]}`, `f.yaml:1:26: random.kinds: kill cannot hit "radio"; it can hit TARGETS`},
		"no kind":    {`random: {seed: 1, kinds: []}`, `f.yaml:1:26: random.kinds: expected at least one kind; without the key all are drawn`},
		"two mistakes": {"faults:\n- {at: x, kind: kill, target: database}\n- {at: 1s, kind: boil}",
			"f.yaml:2:8: faults[0].at: expected a duration such as \"100ms\" or \"2m30s\", found \"x\"\nf.yaml:3:18: faults[1].kind: unknown \"boil\"; there are KINDS"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(c.text), threeNodes)
			want := strings.NewReplacer("KINDS", strings.Join(built(), ", "), "TARGETS", strings.Join(names(shapeOf(faultlog.Kill).targets), ", ")).Replace(c.want)
			require.EqualError(t, err, want)
		})
	}
}

func TestParseBoundsTheList(t *testing.T) {
	_, err := Parse("f.yaml", []byte("faults:\n"+strings.Repeat("- 1\n", MaxScheduled+1)), threeNodes)
	require.EqualError(t, err, "f.yaml:2:1: faults: expected at most 10000 faults, found 10001")
}

func FuzzParse(f *testing.F) {
	f.Add("faults: [{at: 1s, kind: stop, target: driver, node: client, driver: udt, for: 5s}]\nrandom: {seed: 1, every: 1s, kinds: [kill]}")
	f.Add("faults:\n- {at: 5s, kind: kill, target: database}\n- &a {at: 1s, kind: stop, target: database, for: 5s}\n- *a")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("f.yaml", []byte(text), threeNodes)
		if err != nil {
			return
		}
		require.True(t, slices.IsSortedFunc(s.Faults, func(a, b Injection) int { return int(max(-1, min(1, a.At-b.At))) }))
		for _, i := range s.Faults {
			sh := shapeOf(i.Kind)
			require.NotNil(t, sh)
			require.Contains(t, sh.targets, i.Target)
			require.Equal(t, sh.lasts, i.For > 0)
			require.Equal(t, ofNode(i.Target), i.Node != "")
		}
	})
}

// The same seed gives the same faults; nothing is hit while it is hit.
func TestRandom(t *testing.T) {
	a, b, other := NewRandom(7, 2*time.Second, nil, threeNodes), NewRandom(7, 2*time.Second, nil, threeNodes), NewRandom(8, 2*time.Second, nil, threeNodes)
	until := map[place]time.Duration{}
	drawn, differ := map[draw]int{}, false
	var last Injection
	const n = 20_000
	for range n {
		i, ok := a.Next()
		require.True(t, ok)
		same, _ := b.Next()
		require.Equal(t, i, same)
		o, _ := other.Next()
		differ = differ || o != i
		require.GreaterOrEqual(t, i.At, last.At)
		for _, p := range placesOf(i) {
			require.GreaterOrEqual(t, i.At, until[p])
			until[p] = i.At + i.For
		}
		require.Equal(t, shapeOf(i.Kind).lasts, i.For > 0)
		drawn[draw{Choice{i.Kind, i.Target}, i.Node}]++
		last = i
	}
	require.True(t, differ, "two seeds give the same faults")
	require.InDelta(t, n*2.0, last.At.Seconds(), n*0.5)
	for _, d := range a.draws {
		require.Greater(t, drawn[d], n/len(a.draws)/4, "%v is hardly ever drawn", d)
	}
	require.Len(t, drawn, len(a.draws))
}

func TestRandomWithoutAnyTarget(t *testing.T) {
	_, ok := NewRandom(1, time.Second, []Choice{{faultlog.Kill, faultlog.Driver}}, Nodes{All: threeNodes.All}).Next()
	require.False(t, ok)
}
