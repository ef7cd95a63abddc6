package executor

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/protocols/contract"
)

// probing is a runner whose probes run until they are told to end, and whose
// transfers are those of another runner.
type probing struct {
	scripted
	values contract.ProbeMetrics
	code   contract.Code // of probes, in place of values
}

func (r *probing) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error) {
	if protocol != "probe" || p.Role != contract.RoleClient {
		return r.scripted.Start(ctx, protocol, p, payload)
	}
	r.mu.Lock()
	r.started = append(r.started, *p)
	r.mu.Unlock()
	in, out := io.Pipe()
	x := &probingProcess{runner: r, id: p.Transfer.ID, in: in, out: out, done: make(chan struct{})}
	go func() {
		x.say(&contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "script"}})
		x.say(&contract.Event{Event: contract.KindConnected, Transfer: x.id, ConnectNS: 7})
		if p.Transfer.DurationMS > 0 {
			x.Terminate()
		}
	}()
	return x, nil
}

type probingProcess struct {
	runner *probing
	id     string
	in     *io.PipeReader
	out    *io.PipeWriter
	end    sync.Once
	done   chan struct{}
}

func (p *probingProcess) say(e *contract.Event) {
	b, err := json.Marshal(e)
	if err == nil {
		_, _ = p.out.Write(append(b, '\n'))
	}
}

func (p *probingProcess) Output() io.ReadCloser { return p.in }
func (p *probingProcess) Done() <-chan struct{} { return p.done }
func (p *probingProcess) Exit() Exit            { return Exit{} }
func (p *probingProcess) Log() string           { return "the probe's log" }
func (p *probingProcess) Stops() *Stops         { return nil }
func (p *probingProcess) Kill()                 { p.Terminate() }
func (p *probingProcess) Terminate() {
	go p.end.Do(func() {
		if r := p.runner; r.code != "" {
			p.say(&contract.Event{Event: contract.KindError, Transfer: p.id, Code: r.code, Message: "as scripted"})
		} else {
			p.say(&contract.Event{Event: contract.KindResult, Transfer: p.id, Result: &contract.Result{SizeBytes: r.values.SentBytes, ElapsedNS: 100e6, Probe: &r.values}})
		}
		p.out.Close()
		close(p.done)
	})
}

// TestProbes: a probe ends with the transfers beside it, and neither decides
// anything of the other.
func TestProbes(t *testing.T) {
	whole := contract.ProbeMetrics{Sent: 3, Received: 3, SentBytes: 300, ReceivedBytes: 300, Delay: &contract.Delays{MinNS: 25e6, MeanNS: 25e6, P50NS: 25e6, P95NS: 25e6, P99NS: 25e6, MaxNS: 25e6}}
	more, early := whole, whole
	more.Received, more.Lost, more.ReceivedBytes = 4, -1, 400
	early.Delay = &contract.Delays{MinNS: 1e6, MeanNS: 25e6, P50NS: 25e6, P95NS: 25e6, P99NS: 25e6, MaxNS: 25e6}
	for name, c := range map[string]struct {
		values         contract.ProbeMetrics
		code, bulkCode contract.Code
		delivered      int64 // by the last hop, as the radio counts
		alone, back    bool  // without a transfer; from the server
		want, probe    journal.Verdict
		reason         string // of the probe
	}{
		"both":                  {values: whole, want: journal.Succeeded, probe: journal.Succeeded},
		"the transfer fails":    {values: whole, bulkCode: contract.CodeReset, want: journal.Failed, probe: journal.Succeeded},
		"the probe fails":       {code: contract.CodeInternal, want: journal.Succeeded, probe: journal.Failed, reason: "internal"},
		"the probe times out":   {code: contract.CodeTransferTimeout, want: journal.Succeeded, probe: journal.TimedOut, reason: "transfer-timeout"},
		"more than sent":        {values: more, want: journal.Succeeded, probe: journal.Invalid, reason: journal.ReasonMoreThanSent},
		"all that came":         {values: whole, delivered: 3, want: journal.Succeeded, probe: journal.Succeeded},
		"more than came":        {values: whole, delivered: 2, want: journal.Succeeded, probe: journal.Invalid, reason: journal.ReasonMoreThanSent},
		"more than came back":   {values: whole, delivered: 2, back: true, want: journal.Succeeded, probe: journal.Invalid, reason: journal.ReasonMoreThanSent},
		"earlier than light":    {values: early, want: journal.Succeeded, probe: journal.Invalid, reason: journal.ReasonFasterThanRadio},
		"from the server":       {values: whole, back: true, want: journal.Succeeded, probe: journal.Succeeded},
		"back before light":     {values: early, back: true, want: journal.Succeeded, probe: journal.Invalid, reason: journal.ReasonFasterThanRadio},
		"from the server alone": {values: whole, back: true, alone: true, want: journal.Succeeded, probe: journal.Succeeded},
		"alone":                 {values: whole, alone: true, want: journal.Succeeded, probe: journal.Succeeded},
		"alone, and it fails":   {code: contract.CodeReset, alone: true, want: journal.Failed, probe: journal.Failed, reason: "reset"},
		"alone, more than sent": {values: more, alone: true, want: journal.Invalid, probe: journal.Invalid, reason: journal.ReasonMoreThanSent},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := runsheet.Decode(testSheet(t, 1, 1))
			if err != nil {
				t.Fatal(err)
			}
			s.Treatments = append(s.Treatments, runsheet.Treatment{Name: "voice", Protocol: "probe", Port: 5003, Probe: true, DSCP: 46})
			probe := runsheet.Flow{Treatment: "voice", From: radio.RoleClient, To: radio.RoleServer, PayloadSeed: 9}
			if c.back {
				probe.From, probe.To = probe.To, probe.From
			}
			if c.alone {
				probe.Duration = 1000000
				s.Trials[0].Treatment, s.Trials[0].Flows = "voice", nil
			}
			s.Trials[0].Probes = []runsheet.Flow{probe}
			sheet, err := s.Encode()
			if err != nil {
				t.Fatal(err)
			}
			j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
			defer j.Close()
			r := &probing{values: c.values, code: c.code}
			r.fail = func(*contract.Parameters) contract.Code { return c.bulkCode }
			a := &fakeRadio{}
			if c.delivered > 0 {
				last := radiocontrol.Traffic{From: radio.RoleRelay, To: probe.To, Source: probe.From, Destination: probe.To, DeliveredPackets: c.delivered}
				if last.DestinationPort = 5003; c.back {
					last.SourcePort, last.DestinationPort = 5003, 0
				}
				a.traffic = [][]radiocontrol.Traffic{{last}}
			}
			if err := Lead(context.Background(), config(sheet, j, r, a)); err != nil {
				t.Fatal(err)
			}
			if len(a.flows) != len(s.Trials[0].Flows) {
				t.Errorf("the radio computes bounds of %d flows, expected those of %d transfers", len(a.flows), len(s.Trials[0].Flows))
			}
			e := probesEnd(t, j)
			if len(e.Probes) != 1 || len(e.Flows) != len(s.Trials[0].Flows) {
				t.Fatalf("attempt %+v", e)
			}
			p := e.Probes[0]
			if e.Verdict != c.want || p.Verdict != c.probe || p.Reason != c.reason || p.Flow != len(e.Flows) {
				t.Errorf("attempt %s, probe %+v; expected %s and %s %q", e.Verdict, p, c.want, c.probe, c.reason)
			}
			if (p.Result != nil) != (c.code == "") {
				t.Errorf("result %+v", p.Result)
			}
			if c.probe == journal.Failed && !strings.Contains(e.Log, "the probe's log") {
				t.Errorf("log %q", e.Log)
			}
			told := 0
			for _, x := range r.started {
				if x.Transfer.Seed != 9 {
					continue
				}
				// Also where the server sends, it is the client who opens and ends it.
				if told++; x.DSCP != 46 || x.Role != contract.RoleClient || x.Remote.Port != 5003 || x.Transfer.FromServer != c.back {
					t.Errorf("the probe was told %+v", x)
				}
			}
			if told != 1 {
				t.Errorf("%d probes were started", told)
			}
		})
	}
}

// probesEnd is the one attempt of a journal, whose records name its probes.
func probesEnd(t *testing.T, j Journal) (e journal.AttemptEnded) {
	t.Helper()
	for _, rec := range read(t, j) {
		switch rec.Type {
		case journal.TypeAttemptStarted:
			if b := body[journal.AttemptStarted](t, rec); len(b.Probes) != 1 {
				t.Errorf("attempt-started %+v", b)
			}
		case journal.TypeAttemptEnded:
			e = body[journal.AttemptEnded](t, rec)
		}
	}
	return e
}
