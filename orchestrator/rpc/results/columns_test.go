package results

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/protocols/contract"
)

// Every column of the files that are written here is described.
func TestColumnsAreDescribed(t *testing.T) {
	text, err := os.ReadFile("../../../docs/exports.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, columns := range map[string][]string{"samples.csv": samplesHeader(), "channels.csv": channelsHeader, "readings.csv": readingsHeader} {
		_, section, found := strings.Cut(string(text), "\n## "+file+"\n")
		if !found {
			t.Errorf("%s has no section", file)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, c := range columns {
			if !strings.Contains(section, "`"+c+"`") {
				t.Errorf("%s: the column %s is not described", file, c)
			}
		}
	}
}

// The document describes each metric as the driver contract does.
func TestValuesAreDescribed(t *testing.T) {
	text, err := os.ReadFile("../../../docs/exports.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range contract.Metrics {
		if f.Name == contract.ElapsedNS {
			continue // in seconds there
		}
		if row := fmt.Sprintf("| `%s` | %s; %s |\n", f.Name, regexp.MustCompile(`[a-z]+_bytes`).ReplaceAllString(f.Meaning, "`$0`"), f.Unit); !strings.Contains(string(text), row) {
			t.Errorf("docs/exports.md has no row\n%s", row)
		}
	}
}

// The file's columns and their form do not change: other programs read it.
func TestSampleRow(t *testing.T) {
	const header = "run,trial,iteration,treatment,attempt,flow,side,at,elapsed_s,sent_bytes,acked_bytes,cwnd_bytes,ssthresh_bytes,flight_bytes," +
		"srtt_us,rttvar_us,rto_us,retransmits,timeouts,loss_events,pacing_bps,bandwidth_bps,transmitted_bytes,retransmitted_bytes,min_rtt_us,more"
	if got := strings.Join(samplesHeader(), ","); got != header {
		t.Errorf("columns\n%s, expected\n%s", got, header)
	}
	row := newSampleRow()
	row.ofTrial("r-1", &store.Trial{Trial: 4, Iteration: 2, Treatment: "cubic"})
	s := &store.Sample{At: time.Date(2026, 3, 14, 15, 9, 26, 535_000_000, time.UTC), RunID: "r-1", Attempt: 1, Flow: 3, Side: "client",
		Metrics: contract.Sample{ElapsedNS: 1_234_567_890, SentBytes: 10}}
	for want, change := range map[string]func(){
		"r-1,4,2,cubic,1,3,client,2026-03-14T15:09:26.535Z,1.234568,10,,,,,,,,,,,,,,,,\r\n": func() {},
		`r-1,4,2,cubic,1,3,client,2026-03-14T15:09:26.535Z,1.234568,10,9,8,7,6,5,4,3,2,1,0,1.5e+06,0.25,12,11,10,"{""x"": 1}"` + "\r\n": func() {
			f := &s.Metrics
			f.AckedBytes, f.CwndBytes, f.SsthreshBytes, f.FlightBytes = new(int64(9)), new(int64(8)), new(int64(7)), new(int64(6))
			f.SRTTUS, f.RTTVarUS, f.RTOUS = new(int64(5)), new(int64(4)), new(int64(3))
			f.Retransmits, f.Timeouts, f.LossEvents = new(int64(2)), new(int64(1)), new(int64(0))
			f.TransmittedBytes, f.RetransmittedBytes, f.MinRTTUS = new(int64(12)), new(int64(11)), new(int64(10))
			f.PacingBPS, f.BandwidthBPS, s.More = new(1.5e6), new(0.25), []byte(`{"x": 1}`)
		},
	} {
		before := *s
		change()
		if got := string(row.of(s)); got != want {
			t.Errorf("row\n%s, expected\n%s", got, want)
		}
		*s = before
	}
}

// The pages say which relay processes a treatment's flows pass, as tables and files do.
func TestSummaryNamesRelayProcesses(t *testing.T) {
	r := report.Row{Treatment: "i-tcp", Via: "split 1.0.0 at the relay"}
	if got := asTreatment(&r, 0).Via; got != r.Via {
		t.Errorf("via %q, expected %q", got, r.Via)
	}
}

// The pages show the words of the report: they judge nothing themselves.
func TestSummaryHasTheConclusion(t *testing.T) {
	s := asSummary(&report.RunTable{Conclusion: "SCTP leads TCP CUBIC by 21 %.", Notes: []string{"Throughput fell."}}, &report.Run{})
	if s.Conclusion != "SCTP leads TCP CUBIC by 21 %." || !slices.Equal(s.Notes, []string{"Throughput fell."}) {
		t.Errorf("%q, %q", s.Conclusion, s.Notes)
	}
}
