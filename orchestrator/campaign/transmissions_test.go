package campaign

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func profile(name string, centre float64) *radio.Profile {
	p := &radio.Profile{Name: name}
	if centre > 0 {
		p.Parameters = []radio.Parameter{{Name: "frequency", Value: centre, Unit: "MHz"}, {Name: "channel_bandwidth", Value: 5, Unit: "MHz"}}
	}
	return p
}

// Runs whose radios share frequencies follow one another; the others run side
// by side. A run waits for those that were queued before it.
func TestConflictOfTransmissions(t *testing.T) {
	a, b, far, dark := profile("a", 402.5), profile("b", 404), profile("far", 2230), profile("dark", 0)
	real := func(id string, p *radio.Profile) *run {
		return &run{id: id, sheetInfo: &sheetInfo{radio: p}, realRadios: true, state: Running}
	}
	for name, c := range map[string]struct {
		before []*run
		next   *run
		want   string // the run in its way; empty: none
	}{
		"nothing before":             {nil, real("r", a), ""},
		"the same radio":             {[]*run{real("x", a)}, real("r", a), "x"},
		"overlapping radios":         {[]*run{real("x", a)}, real("r", b), "x"},
		"far apart":                  {[]*run{real("x", a)}, real("r", far), ""},
		"the first that collides":    {[]*run{real("y", far), real("x", a), real("z", a)}, real("r", a), "x"},
		"a radio of no known band":   {[]*run{real("x", far)}, real("r", dark), "x"},
		"after one of no known band": {[]*run{real("x", dark)}, real("r", far), "x"},
		"emulated beside real":       {[]*run{real("x", a)}, &run{sheetInfo: &sheetInfo{radio: a}}, ""},
		"real beside emulated":       {[]*run{{id: "x", sheetInfo: &sheetInfo{radio: a}, state: Running}}, real("r", a), ""},
		"collecting":                 {[]*run{{id: "x", sheetInfo: &sheetInfo{radio: a}, realRadios: true, state: Collecting}}, real("r", a), ""},
		"collecting over the radio":  {[]*run{{id: "x", sheetInfo: &sheetInfo{radio: a, inBand: true}, realRadios: true, state: Collecting}}, real("r", a), "x"},
		"queued before":              {[]*run{{id: "x", sheetInfo: &sheetInfo{radio: a}, realRadios: true, state: Queued}}, real("r", a), "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var before activeTransmissions
			for _, r := range c.before {
				before = before.add(r)
			}
			got := before.conflict(c.next)
			if c.want == "" {
				require.Empty(t, got)
			} else {
				require.Contains(t, got, "the end of run "+c.want+", so that the two do not transmit over each other")
			}
		})
	}
}

// Two teams have radios that share frequencies: the engine runs one after the
// other. A third team, on another band, runs at the same time.
func TestEngineSeparatesRunsOnSharedFrequencies(t *testing.T) {
	st := storetest.Open(t)
	e, err := Start(t.Context(), Config{Store: st})
	require.NoError(t, err)
	t.Cleanup(e.Stop)
	run := map[string]string{}
	for _, team := range []struct {
		name  string
		radio *radio.Profile
	}{{"first", profile("a", 402.5)}, {"second", profile("b", 404)}, {"third", profile("far", 2230)}} {
		s := storetest.Sheet(2)
		s.Radio, s.Cell.Radio, s.Network = *team.radio, team.radio.Name, nil
		for i := range s.Treatments {
			s.Treatments[i].DriverVersion = "1"
		}
		for _, role := range storetest.Roles {
			require.NoError(t, e.Nodes.Register(t.Context(), nodes.Registration{Name: team.name + "-" + string(role), Role: string(role), Radio: team.radio.Name, Incarnation: "1",
				Drivers: []nodes.Driver{{Name: "test", Version: "1"}}}))
		}
		_, ids, problems, err := e.Queue(t.Context(), Plan{Name: team.name, Plan: "p", File: "p.yaml", Text: []byte("x"), Hash: runsheet.Hash([]byte(team.name)), Sheets: []*runsheet.Sheet{s}, Estimates: make([][]time.Duration, 1), Moves: MovesNone})
		require.NoError(t, err)
		require.Empty(t, problems)
		run[team.name] = ids[0]
	}
	state := func(team string) string {
		r, err := st.RunOverview(t.Context(), run[team])
		require.NoError(t, err)
		return r.State
	}
	require.Eventually(t, func() bool { return state("first") == string(Preparing) && state("third") == string(Preparing) }, 30*time.Second, 10*time.Millisecond)
	require.Equal(t, string(Queued), state("second"))
	require.Eventually(t, func() bool { return len(e.Live.Of(run["second"]).WaitingFor) == 1 }, 30*time.Second, 10*time.Millisecond)
	require.Contains(t, e.Live.Of(run["second"]).WaitingFor[0], "radio a fills 400 to 405 MHz and radio b 401.5 to 406.5 MHz")

	r, err := st.RunOverview(t.Context(), run["first"])
	require.NoError(t, err)
	require.NoError(t, e.Abort(t.Context(), r.CampaignID, "enough"))
	for _, role := range storetest.Roles { // no agent is there to end its part
		cut, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, _ = e.Nodes.Poll(cut, "first-"+string(role), "1", 0, 0, time.Second)
	}
	require.Eventually(t, func() bool { return state("second") == string(Preparing) }, 30*time.Second, 10*time.Millisecond)
}
