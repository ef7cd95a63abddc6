package preflight

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/agents/telemetry"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/telemetrysource"
)

// As chrony 4.3 prints it.
const (
	trackingLine = "C0A80A01,192.168.10.1,2,1784901234.567890123,-0.000012345,0.000045000,0.000030000,-12.345,0.001,0.123,0.001200000,0.000400000,64.2,Normal\n"
	lostLine     = "7F7F0101,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,1.000000000,0.0,Not synchronised\n"
)

func TestTracking(t *testing.T) {
	for _, c := range []struct {
		line  string
		state linktrialv1.CheckState
		words []string
	}{
		{trackingLine, ok, []string{"chrony follows 192.168.10.1 at stratum 2: 0.01 ms off, within 1.00 ms"}},
		{lostLine, warning, []string{"follows no clock", "chronyc sources"}},
		{"C0A80A01,192.168.10.1,2,1,-0.5,0,0,0,0,0,0,0,64.2,Normal\n", warning, []string{"500 ms off", "chronyc makestep"}},
	} {
		tr, err := parseTracking([]byte(c.line))
		if err != nil {
			t.Fatalf("%s: %v", c.line, err)
		}
		expect(t, judgeTracking(newTimeCheck(), tr), c.state, c.words...)
	}
	for _, line := range []string{"", "506 Cannot talk to daemon\n", "a,b,c,d,e,f,g,h,i,j,k,l,m,n\n", "A,B,1,1,x,0,0,0,0,0,0,0,0,Normal\n", "A,B,1,1,NaN,0,0,0,0,0,0,0,0,Normal\n"} {
		if tr, err := parseTracking([]byte(line)); err == nil {
			t.Errorf("%q was taken: %+v", line, tr)
		}
	}
}

func FuzzTracking(f *testing.F) {
	f.Add([]byte(trackingLine))
	f.Add([]byte(lostLine))
	f.Fuzz(func(t *testing.T, line []byte) {
		tr, err := parseTracking(line)
		if err == nil && (tr.offset.Abs() > time.Duration(1e18) || tr.bound < -time.Duration(2e18)) {
			t.Errorf("%+v", tr)
		}
	})
}

func TestKernelClock(t *testing.T) {
	expect(t, judgeKernelClock(newTimeCheck(), &unix.Timex{Status: unix.STA_UNSYNC}, nil), warning, "no time service")
	expect(t, judgeKernelClock(newTimeCheck(), &unix.Timex{Esterror: 1500}, nil), ok, "within 1.50 ms")
	expect(t, judgeKernelClock(newTimeCheck(), &unix.Timex{}, errors.New("forbidden")), unknown, "forbidden")
}

func TestClockIsDaysOff(t *testing.T) {
	c := judgeClock(journal.ClockOffset{Offset: 366 * 24 * time.Hour, Error: time.Millisecond})
	expect(t, c, failed, "366 days behind the orchestrator")
}

func TestTelemetryChecks(t *testing.T) {
	expect(t, judgeTelemetry(nil)[0], notChecked, "names nothing")
	all := judgeTelemetry([]telemetry.State{
		{Telemetry: journal.Telemetry{Source: "snmp", Kind: telemetrysource.KindSNMP, Values: []journal.Reading{{Name: "snr", Value: 12.5, Unit: "dB"}, {Name: "mode", Value: 2}}}},
		{Telemetry: journal.Telemetry{Source: "snmp", Kind: telemetrysource.KindSNMP, Error: "no answer to SNMP from 192.0.2.1:161 within 2s"}},
	})
	expect(t, all[0], ok, "snmp: snr 12.5 dB, mode 2")
	expect(t, all[1], warning, "no answer to SNMP from 192.0.2.1:161 within 2s", "switch SNMP on in the radio")
}
