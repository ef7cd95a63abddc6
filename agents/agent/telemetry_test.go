package agent

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
)

// countedSource is a source at a server that counts how often it is read, and how often
// while a trial of the client runs.
type countedSource struct {
	telemetrysource.Source
	asked, during atomic.Int64
}

func newCountedSource(t *testing.T, name string, poll telemetrysource.Poll, every time.Duration, runs func() bool) *countedSource {
	t.Helper()
	s := &countedSource{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		if runs() {
			s.during.Add(1)
		}
		_, _ = io.WriteString(w, `{"snr":12.5}`)
	}))
	t.Cleanup(server.Close)
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	s.Source = telemetrysource.Source{Name: name, Kind: telemetrysource.KindHTTP, On: telemetrysource.OnReal, Poll: poll, IntervalNS: every.Nanoseconds(), Host: telemetrysource.TargetRadio, Port: int(at.Port()), Settings: &telemetrysource.HTTP{Path: "/"},
		Values: []telemetrysource.Value{{Name: "snr", Place: "/snr", Unit: "dB", Scale: 1}}}
	return s
}

// A run's journal has the radio's readings before it, between its trials and
// after it; during a trial only a source that allows it is read, and one that
// does not answer is recorded once.
func TestTelemetryOfARun(t *testing.T) {
	var state atomic.Pointer[string]
	runs := func() bool { s := state.Load(); return s != nil && trialRuns(*s) }
	between := newCountedSource(t, "between", telemetrysource.PollBetweenTrials, time.Nanosecond, runs)
	always := newCountedSource(t, "always", telemetrysource.PollAlways, 20*time.Millisecond, runs)
	silent := newCountedSource(t, "silent", telemetrysource.PollBetweenTrials, time.Nanosecond, runs)
	silent.Port = freePort(t)

	const trials = 3
	sheet, err := runsheet.Decode(sheetOf(t, trials, runsheet.ControlOutOfBand, 60))
	if err != nil {
		t.Fatal(err)
	}
	sheet.Radio = radio.Profile{Name: "r", Telemetry: []telemetrysource.Source{between.Source, always.Source, silent.Source},
		Attach: &radio.Attach{Roles: map[radio.Role]radio.AttachRole{radio.RoleClient: {Radio: "127.0.0.1"}, radio.RoleServer: {Radio: "127.0.0.1"}}}}
	encoded, err := sheet.Encode()
	if err != nil {
		t.Fatal(err)
	}
	o := newOrchestrator(t, encoded)
	for _, role := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		c := config(t, role, o.server.URL)
		c.Radio = "r"
		if role == radio.RoleClient {
			state.Store(&c.StateDir)
		} else {
			c.RadioHost = "127.0.0.9" // over the profile's, and nobody is there
		}
		runAgent(t, c)
	}
	o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "client", "server")
	eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
	o.want(linktrialv1.Assignment_DESIRED_STATE_RUN, "client", "server")
	eventually(t, "end of the client's part", o.has("client", journal.TypeRunEnded, 1))
	o.want(linktrialv1.Assignment_DESIRED_STATE_FINISH, "client", "server")
	eventually(t, "end of the server's part", o.has("server", journal.TypeRunEnded, 1))

	o.mu.Lock()
	defer o.mu.Unlock()
	order := ""
	failures := map[string]int{}
	for _, r := range o.stored["client"] {
		switch r.Type {
		case journal.TypeAttemptStarted:
			order += "("
		case journal.TypeAttemptEnded:
			order += ")"
		case journal.TypeRunEnded:
			order += "."
		case journal.TypeTelemetry, journal.TypeTelemetryFailed:
			var b journal.Telemetry
			if err := json.Unmarshal(r.Body, &b); err != nil {
				t.Fatal(err)
			}
			if r.Type == journal.TypeTelemetryFailed {
				failures[b.Source]++
				if !strings.Contains(b.Error, "nothing answers HTTP at 127.0.0.1:") {
					t.Errorf("%s: %s", b.Source, b.Error)
				}
			} else if len(b.Values) != 1 || b.Values[0] != (journal.Reading{Name: "snr", Value: 12.5, Unit: "dB"}) {
				t.Errorf("%+v", b)
			} else if b.Source == "between" {
				order += "b"
			}
		}
	}
	// Before the first trial, at each boundary, and after the last.
	if compact := strings.ReplaceAll(order, "bb", "b"); !strings.HasPrefix(compact, "b()b()b()") || !strings.HasSuffix(compact, "b.") {
		t.Errorf("readings between trials came so: %s", order)
	}
	if n := failures["silent"]; n != 1 || len(failures) != 1 {
		t.Errorf("failures were recorded %v times", failures)
	}
	if between.during.Load() > 0 || between.asked.Load() < trials+1 {
		t.Errorf("asked %d times, %d of them during a trial", between.asked.Load(), between.during.Load())
	}
	if always.during.Load() == 0 {
		t.Error("what may be read at any time was not read during trials")
	}
	if n := count(o.stored["server"], journal.TypeTelemetryFailed); n != 3 {
		t.Errorf("the server recorded %d sources that do not answer, expected all three", n)
	}
}

// What a node reads follows from its radio, and from whether somebody answers for it.
func TestSourcesOfANode(t *testing.T) {
	p := &radio.Profile{Telemetry: []telemetrysource.Source{
		{Name: "mib", On: telemetrysource.OnReal, Host: telemetrysource.TargetRadio}, {Name: "gps", On: telemetrysource.OnBoth, Host: "127.0.0.1"}}}
	for name, c := range map[string]struct {
		cfg     Config
		profile *radio.Profile
		want    string
	}{
		"real":                        {Config{Radio: "r"}, p, "mib gps"},
		"real, profile not known":     {Config{Radio: "r"}, nil, ""},
		"emulated":                    {Config{RadioHost: "10.77.0.1", Place: journal.PlaceEmulated}, p, "gps radio-snmp radio-http"},
		"emulated, no profile":        {Config{RadioHost: "10.77.0.1", Place: journal.PlaceEmulated}, nil, "radio-snmp radio-http"},
		"emulated, nobody answers":    {Config{Place: journal.PlaceEmulated}, p, "gps"},
		"emulated in virtual time":    {Config{RadioHost: "10.77.0.1", Place: journal.PlaceVirtual}, p, ""},
		"nothing known, nobody there": {Config{Place: journal.PlaceEmulated}, nil, ""},
		"no name":                     {Config{RadioHost: "10.77.0.1", Place: journal.PlaceUnnamed}, p, ""},
	} {
		var got []string
		for _, s := range c.cfg.poller(c.profile, nil, nil).States() {
			got = append(got, s.Source)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, want %q", name, s, c.want)
		}
	}
}

// What rules of validity are about is read on every node, whatever the radio's profile
// says, and what is watched has no gaps.
func TestRulesOfValidityAreWatched(t *testing.T) {
	power := t.TempDir()
	for name, value := range map[string]string{"type": "Battery", "capacity": "73", "status": "Discharging"} {
		if err := os.MkdirAll(filepath.Join(power, "BAT0"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(power, "BAT0", name), []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sheet, err := runsheet.Decode(sheetOf(t, 2, runsheet.ControlOutOfBand, 60))
	if err != nil {
		t.Fatal(err)
	}
	least := 15.0
	sheet.Radio = radio.Profile{Name: "r"}
	sheet.Valid = &runsheet.Valid{ClockStep: time.Second, Interfering: &runsheet.Interfering{Share: 0.05}, PositionMetres: 25,
		Readings: []runsheet.ReadingLimit{{Rule: runsheet.RuleBattery, Reading: runsheet.ReadingCharge, Unit: "%", Min: &least}}}
	encoded, err := sheet.Encode()
	if err != nil {
		t.Fatal(err)
	}
	o := newOrchestrator(t, encoded)
	for _, role := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		c := config(t, role, o.server.URL)
		c.Radio, c.PowerSupplies, c.Device = "r", power, "lo"
		runAgent(t, c)
	}
	o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "client", "server")
	eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
	o.want(linktrialv1.Assignment_DESIRED_STATE_RUN, "client", "server")
	eventually(t, "end of the client's part", o.has("client", journal.TypeRunEnded, 1))
	o.want(linktrialv1.Assignment_DESIRED_STATE_FINISH, "client", "server")
	eventually(t, "end of the server's part", o.has("server", journal.TypeRunEnded, 1))
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, node := range []string{"client", "server"} {
		var watched []journal.Watched
		charge, position := 0, 0
		for _, r := range o.stored[node] {
			switch r.Type {
			case journal.TypeWatched:
				var b journal.Watched
				if err := json.Unmarshal(r.Body, &b); err != nil {
					t.Fatal(err)
				}
				watched = append(watched, b)
			case journal.TypeTelemetry, journal.TypeTelemetryFailed:
				var b journal.Telemetry
				if err := json.Unmarshal(r.Body, &b); err != nil {
					t.Fatal(err)
				}
				switch {
				case b.Kind == telemetrysource.KindHost && len(b.Values) > 0 && b.Values[0] == journal.Reading{Name: "charge", Value: 73, Unit: "%"}:
					charge++
				case b.Kind == telemetrysource.KindGPSD && strings.Contains(b.Error, "gpsd"):
					position++
				default:
					t.Errorf("%s: %+v", node, b)
				}
			}
		}
		if charge == 0 || position == 0 {
			t.Errorf("%s: %d readings of the charge, %d of the position", node, charge, position)
		}
		if len(watched) == 0 {
			t.Fatalf("%s: nothing is watched", node)
		}
		for i, w := range watched {
			if i > 0 && !w.Since.Equal(watched[i-1].Until) {
				t.Errorf("%s: watched until %s, and then since %s", node, watched[i-1].Until, w.Since)
			}
			if w.Unwatched != "" || w.ClockStep != 0 {
				t.Errorf("%s: %+v", node, w)
			}
		}
	}
}
