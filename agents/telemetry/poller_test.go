package telemetry

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
)

// The thread that enters namespaces lives as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("linktrial/internal/process.init.func1.1"), goleak.IgnoreAnyFunction("linktrial/internal/process.glob..func1.1"))
}

func port(t *testing.T, a net.Addr) int {
	t.Helper()
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		t.Fatal(err)
	}
	return int(ap.Port())
}

// page is a source at an HTTP server that answers with body.
func page(t *testing.T, h http.HandlerFunc, values ...telemetrysource.Value) telemetrysource.Source {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return telemetrysource.Source{Name: "page", Kind: telemetrysource.KindHTTP, Poll: telemetrysource.PollBetweenTrials, IntervalNS: int64(time.Hour), Host: "127.0.0.1", Port: port(t, s.Listener.Addr()), Settings: &telemetrysource.HTTP{Path: "/x"}, Values: values}
}

// named has the configuration name the addresses of its sources.
func named(c Config) Config {
	for _, t := range c.Sources {
		c.Named = append(c.Named, t.Address())
	}
	return c
}

func words(states []State) string {
	var out []string
	for _, s := range states {
		line := s.Source
		for _, v := range s.Values {
			line += fmt.Sprintf(" %s=%.6g %s", v.Name, v.Value, v.Unit)
		}
		if s.Error != "" {
			line += " ! " + s.Error
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func check(t *testing.T, c Config) string {
	t.Helper()
	return words(New(named(c)).Check(t.Context()))
}

// Places where nothing answers are told in one sentence each.
func TestSourcesThatDoNotAnswer(t *testing.T) {
	deaf, err := net.ListenPacket("udp", "127.0.0.1:0") // takes datagrams and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	none := port(t, closed.Addr())
	closed.Close()
	value := []telemetrysource.Value{{Name: "x", Place: "1.3.6.1", Scale: 1}}
	two := &telemetrysource.SNMP{Access: &telemetrysource.SNMPAccess{Version: "2c", Community: "public"}}
	source := func(name string, k telemetrysource.Kind, host string, port int) telemetrysource.Source {
		settings := map[telemetrysource.Kind]telemetrysource.Settings{telemetrysource.KindSNMP: two, telemetrysource.KindHTTP: &telemetrysource.HTTP{Path: "/"}}
		return telemetrysource.Source{Name: name, Kind: k, IntervalNS: int64(time.Second), Host: host, Port: port, Settings: settings[k], Values: value}
	}
	secret := source("secret", telemetrysource.KindSNMP, "127.0.0.1", none)
	secret.Settings = &telemetrysource.SNMP{Access: &telemetrysource.SNMPAccess{Version: "3", User: "u", Auth: "sha", AuthEnv: "RADIO_AUTH"}}
	got := check(t, Config{Role: radio.RoleClient, Node: telemetrysource.Node{Env: func(string) string { return "" }, PowerSupplies: t.TempDir(), ThermalZones: t.TempDir()}, Sources: []telemetrysource.Source{
		source("deaf", telemetrysource.KindSNMP, "127.0.0.1", port(t, deaf.LocalAddr())),
		source("refused", telemetrysource.KindSNMP, "127.0.0.1", none),
		source("http", telemetrysource.KindHTTP, "127.0.0.1", port(t, mute.Addr())),
		source("http-none", telemetrysource.KindHTTP, "127.0.0.1", none),
		source("gps", telemetrysource.KindGPSD, "127.0.0.1", port(t, mute.Addr())),
		source("gps-none", telemetrysource.KindGPSD, "127.0.0.1", none),
		source("radio", telemetrysource.KindSNMP, telemetrysource.TargetRadio, 161),
		secret,
		source("power", telemetrysource.KindHost, "", 0),
	}})
	for _, want := range []string{
		fmt.Sprintf("deaf ! no answer to SNMP from %s within 2s", deaf.LocalAddr()),
		fmt.Sprintf("refused ! nothing answers SNMP at 127.0.0.1:%d: the address is there, the service is not", none),
		fmt.Sprintf("http ! no answer to HTTP from %s within 2s", mute.Addr()),
		fmt.Sprintf("http-none ! nothing answers HTTP at 127.0.0.1:%d", none),
		fmt.Sprintf("gps ! no answer to gpsd from %s within 2s", mute.Addr()),
		fmt.Sprintf("gps-none ! nothing answers gpsd at 127.0.0.1:%d", none),
		"radio ! the address at which this node reaches its radio is not known: start the agent with --radio-host, or state attach.roles.client.radio in the profile",
		"secret ! the radio profile names RADIO_AUTH as a secret of the radio's SNMP",
		"power ! this node has no battery that reports its charge, and no sensor of its temperature",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// A source is read when it is due and no sooner; an error is told once; who
// keeps silent is asked less and less often.
func TestPollIntervals(t *testing.T) {
	var asked, broken atomic.Int64
	src := page(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if broken.Load() > 0 {
			http.Error(w, "", http.StatusTeapot)
			return
		}
		_, _ = io.WriteString(w, `{"x":1}`)
	}, telemetrysource.Value{Name: "x", Place: "/x", Scale: 1})
	p := New(named(Config{Sources: []telemetrysource.Source{src}}))
	if news := p.Poll(t.Context(), Always); len(news) != 0 || asked.Load() != 0 {
		t.Errorf("read between trials alone, and was read always: %+v", news)
	}
	if news := p.Poll(t.Context(), Any); len(news) != 1 || news[0].Values[0] != (journal.Reading{Name: "x", Value: 1}) {
		t.Errorf("%+v", news)
	}
	if news := p.Poll(t.Context(), Any); len(news) != 0 || asked.Load() != 1 {
		t.Errorf("read again before its time: %+v", news)
	}
	broken.Store(1)
	s := p.sources[0]
	var pauses []time.Duration
	told := 0
	for range 8 {
		s.next = time.Time{}
		s.IntervalNS = 1
		told += len(p.Poll(t.Context(), Any))
		pauses = append(pauses, time.Until(s.next).Round(time.Second))
	}
	if told != 1 || pauses[0] != retryMin || pauses[1] != 2*retryMin || pauses[7] != retryMax {
		t.Errorf("told %d times, pauses %v", told, pauses)
	}
	if st := p.States()[0]; st.Error == "" || len(st.Values) != 1 || st.At.IsZero() {
		t.Errorf("the last reading is kept beside the error: %+v", st)
	}
	broken.Store(0)
	s.next = time.Time{}
	if news := p.Poll(t.Context(), Any); len(news) != 1 || news[0].Error != "" || s.retry.Next() != retryMin {
		t.Errorf("%+v", news)
	}
}

// A reading that the agent itself gives up is no failure of its source; one that
// had less time than usual says how much, and is not told again with more.
func TestInterruptedReadings(t *testing.T) {
	asked := make(chan struct{}, 10)
	src := page(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}, telemetrysource.Value{Name: "x", Place: "/x", Scale: 1})
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	gps := telemetrysource.Source{Name: "gps", Kind: telemetrysource.KindGPSD, IntervalNS: int64(time.Hour), Host: "127.0.0.1", Port: port(t, mute.Addr())}
	p := New(named(Config{Sources: []telemetrysource.Source{src, gps}}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if news := p.Poll(ctx, Any); len(news) != 0 {
		t.Errorf("a reading that was given up is told as %+v", news)
	}
	for i, s := range p.States() {
		if s.Error != "" || !p.sources[i].next.IsZero() {
			t.Errorf("a reading that was given up leaves %+v, next at %s", s, p.sources[i].next)
		}
	}

	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	news := p.Poll(short, Any)
	inTime := regexp.MustCompile(` within [123]00ms$`) // a busy machine may take a part of it
	if len(news) != 2 || !inTime.MatchString(news[0].Error) || !inTime.MatchString(news[1].Error) {
		t.Errorf("with 300 ms to answer: %+v", news)
	}
	for _, s := range p.sources {
		s.next = time.Time{}
	}
	if news := p.Poll(t.Context(), Any); len(news) != 0 {
		t.Errorf("the same silence is told again: %+v", news)
	}
	if got := words(p.States()); strings.Count(got, "within 2s") != 2 {
		t.Errorf("the newest word is\n%s", got)
	}
}

// An address that the assignment does not name is not asked, by whatever kind of source.
func TestOnlyNamedAddresses(t *testing.T) {
	var asked atomic.Int64
	src := page(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `[7]`)
	}, telemetrysource.Value{Name: "x", Place: "/0", Scale: 1})
	gps, snmp := src, src
	gps.Kind, gps.Settings, snmp.Kind, snmp.Settings = telemetrysource.KindGPSD, nil, telemetrysource.KindSNMP, &telemetrysource.SNMP{Access: &telemetrysource.SNMPAccess{Version: "2c"}}
	console := telemetrysource.Source{Name: "console", Kind: telemetrysource.KindSerial, Settings: &telemetrysource.Serial{Device: "/dev/ttyUSB0"}}
	atRadio := src
	atRadio.Host = telemetrysource.TargetRadio
	for _, c := range [][]string{nil, {"127.0.0.1:1"}, {src.Host}} {
		got := New(Config{Sources: []telemetrysource.Source{src, gps, snmp, atRadio, console}, Named: c, Radio: "127.0.0.1"}).Check(t.Context())
		for _, s := range got {
			if !strings.HasPrefix(s.Error, "refused: ") || !strings.Contains(s.Error, "no telemetry address of the signed assignment") {
				t.Errorf("named %v: %s source has %q", c, s.Kind, s.Error)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the address was asked %d times", n)
	}
	if s := New(named(Config{Sources: []telemetrysource.Source{src}})).Check(t.Context())[0]; s.Error != "" || asked.Load() != 1 {
		t.Errorf("the named address: %+v", s)
	}
}

func TestRun(t *testing.T) {
	src := page(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `[7]`) }, telemetrysource.Value{Name: "x", Place: "/0", Scale: 1})
	src.IntervalNS = int64(200 * time.Millisecond)
	p := New(named(Config{Sources: []telemetrysource.Source{src}}))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	n := 0
	p.Run(ctx, Any, func(news []journal.Telemetry) {
		if n += len(news); n >= 3 {
			cancel()
		}
	})
	if n < 3 {
		t.Errorf("%d readings in 30 s", n)
	}
}
