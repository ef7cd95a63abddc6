package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
)

// Part is this node's part in the transfers of a sheet, until [Part.Close].
type Part struct {
	cfg     executor.Config
	sheet   *runsheet.Sheet
	seen    *seen
	counter *counter // nil: see uncounted
	// uncounted is why packets cannot be counted here.
	uncounted string

	finish  context.CancelCauseFunc // of what listens; nil: nothing does
	serving sync.WaitGroup
}

// Begin counts the packets of the transfers from now on. Cfg is as for the node's part in
// a run; its journal is replaced.
func Begin(cfg executor.Config) (*Part, error) {
	sheet, err := runsheet.Decode(cfg.Sheet)
	if err != nil {
		return nil, err
	}
	p := &Part{cfg: cfg, sheet: sheet, seen: &seen{listeners: map[journal.ListenerName]journal.Listener{}, reached: map[string]bool{}, sheet: sheet}}
	p.cfg.Journal, p.cfg.SheetHash = p.seen, runsheet.Hash(cfg.Sheet)
	p.counter, err = startCounter(p.ports(), p.addresses())
	if err != nil {
		p.uncounted = fmt.Sprintf("packets cannot be counted on this node: %v", err)
	}
	return p, nil
}

// eachListener calls f with every listener of the sheet, on whichever node it is, in the
// order in which a flow from the client passes those of its treatment.
func (p *Part) eachListener(f func(l *runsheet.Listener, at radio.Role, port int)) {
	for i := range p.sheet.Treatments {
		t := &p.sheet.Treatments[i]
		if t.Missing != "" {
			continue
		}
		for k := range t.Via {
			v := &t.Via[k]
			f(&runsheet.Listener{Treatment: t, Via: v, Next: t.After(k)}, v.At, v.Port)
		}
		f(&runsheet.Listener{Treatment: t}, radio.RoleServer, t.Port)
	}
}

func (p *Part) ports() (out []uint16) {
	p.eachListener(func(_ *runsheet.Listener, _ radio.Role, port int) { out = append(out, uint16(port)) })
	return out
}

// addresses are those of all nodes, on both radios.
func (p *Part) addresses() (out []netip.Addr) {
	add := func(text string) {
		if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, a)
		}
	}
	add(p.cfg.Address)
	for _, station := range p.sheet.Topology.Stations {
		add(p.cfg.Peers[station.Role])
		add(p.sheet.Network.AddressOf(station.Role))
		second, _ := executor.SecondRadio(p.sheet, station.Role, p.cfg.Place)
		add(second.Address)
	}
	return out
}

// Listen starts the node's listeners, which go on until [Part.Close], and waits until of
// each it is known whether it is ready, or ctx ends.
func (p *Part) Listen(ctx context.Context) {
	lctx, finish := context.WithCancelCause(context.WithoutCancel(ctx))
	p.finish = finish
	p.serving.Go(func() {
		serve := executor.Serve
		if p.cfg.Role == radio.RoleRelay {
			serve = executor.Attend
		}
		if err := serve(lctx, p.cfg); err != nil {
			p.seen.fail(err)
		}
	})
	want := len(p.sheet.Listeners(p.cfg.Role))
	for {
		known, more := p.seen.known()
		if known >= want {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// Carry carries each transfer once, as the client, until all have ended or ctx has, and
// returns what became of them.
func (p *Part) Carry(ctx context.Context) ([]*linktrialv1.TransferSeen, error) {
	flows := map[string][]*linktrialv1.FlowSeen{}
	err := executor.CheckTransfers(ctx, p.cfg, func(trial *runsheet.Trial, checked []executor.CheckedFlow) {
		for i := range checked {
			flows[trial.Treatment] = append(flows[trial.Treatment], flowSeen(&checked[i]))
		}
	})
	out := p.Seen()
	for _, t := range out {
		t.Flows = flows[t.Treatment]
	}
	return out, err
}

func flowSeen(c *executor.CheckedFlow) *linktrialv1.FlowSeen {
	f := &linktrialv1.FlowSeen{From: string(c.From), To: string(c.To), Probe: c.Probe, Connected: c.Connected, SizeBytes: c.SizeBytes,
		Carried: c.Result.Verdict == journal.Succeeded, Invalid: c.Result.Verdict == journal.Invalid || c.Result.Verdict == journal.Aborted,
		Reason: c.Result.Reason, Message: c.Result.Message}
	if !f.Carried {
		f.Log = c.Log
	}
	switch r, last := c.Result.Result, c.Result.LastSample; {
	case r != nil:
		f.Bytes, f.Seconds = r.SizeBytes, time.Duration(r.ElapsedNS).Seconds()
		if r.Probe != nil {
			f.Bytes = r.Probe.Received
		}
	case last != nil && last.AckedBytes != nil:
		f.Bytes = *last.AckedBytes
	}
	return f
}

// Seen is what this node has seen of each treatment so far.
func (p *Part) Seen() []*linktrialv1.TransferSeen {
	var out []*linktrialv1.TransferSeen
	p.eachListener(func(l *runsheet.Listener, at radio.Role, port int) {
		if len(out) == 0 || out[len(out)-1].Treatment != l.Treatment.Name {
			out = append(out, &linktrialv1.TransferSeen{Treatment: l.Treatment.Name})
		}
		t := out[len(out)-1]
		s := &linktrialv1.ListenerSeen{At: string(at), Port: int32(port), Here: at == p.cfg.Role}
		if p.counter != nil {
			n := p.counter.of(uint16(port))
			s.ToReceived, s.ToSent, s.FromReceived, s.FromSent = n.toReceived, n.toSent, n.fromReceived, n.fromSent
			s.IpProtocol, s.Fragments, s.Interfaces = int32(n.protocol), n.fragments, n.names()
		} else {
			s.Uncounted, s.Message = true, p.uncounted
		}
		if s.Here {
			p.seen.state(l, s)
		}
		t.Listeners = append(t.Listeners, s)
	})
	return out
}

// Close ends what listens, and the count, and waits for both.
func (p *Part) Close() {
	if p.finish != nil {
		p.finish(executor.ErrFinish)
		p.serving.Wait()
	}
	if p.counter != nil {
		p.counter.close()
	}
}

// seen is the journal of a node's part: it keeps what matters of the records, in memory.
type seen struct {
	sheet *runsheet.Sheet

	mu        sync.Mutex
	records   int64
	listeners map[journal.ListenerName]journal.Listener
	reached   map[string]bool // by treatment: a transfer has reached its own listener
	failure   error           // why the node's part has ended early
	more      notify.Notifier
}

// Append implements [executor.Journal].
func (s *seen) Append(t journal.Type, body any) (int64, error) {
	s.mu.Lock()
	s.records++
	n, changed := s.records, false
	switch t {
	case journal.TypeListenerReady, journal.TypeListenerFailed:
		if l, ok := body.(journal.Listener); ok {
			s.listeners[journal.ListenerName{Treatment: l.Treatment, At: l.At}], changed = l, true
		}
	case journal.TypeReceived:
		if r, ok := body.(journal.Received); ok {
			s.reached[r.Treatment] = true
		}
	case journal.TypeSamples:
		if b, ok := body.(journal.Samples); ok && b.Side == "server" && b.Trial >= 0 && b.Trial < len(s.sheet.Trials) {
			s.reached[s.sheet.Trials[b.Trial].Treatment] = true
		}
	}
	s.mu.Unlock()
	if changed {
		s.more.Notify()
	}
	_, err := json.Marshal(body) // what no journal could take is a fault here as well
	return n, err
}

// Sync implements [executor.Journal].
func (s *seen) Sync() error { return nil }

// CheckSpace implements [executor.Journal].
func (s *seen) CheckSpace() error { return nil }

// Records implements [executor.Journal]: the node's part begins anew each time.
func (s *seen) Records(func(journal.Record) error) error { return nil }

func (s *seen) fail(err error) {
	s.mu.Lock()
	s.failure = err
	s.mu.Unlock()
	s.more.Notify()
}

// known returns of how many listeners it is known whether they are ready, and a channel
// that is closed when there is more. Where the node's part has ended, it is known of all.
func (s *seen) known() (int, <-chan struct{}) {
	more := s.more.Changed()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return len(s.sheet.Treatments) * (1 + len(radio.Roles)), more
	}
	return len(s.listeners), more
}

// state adds to what was seen of a listener on this node how it is.
func (s *seen) state(l *runsheet.Listener, out *linktrialv1.ListenerSeen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Reached = l.Via == nil && s.reached[l.Treatment.Name]
	now, known := s.listeners[journal.ListenerName{Treatment: l.Treatment.Name, At: l.At()}]
	switch {
	case s.failure != nil:
		out.Message = s.failure.Error()
	case !known:
		out.Message = "it was not ready in time"
	case now.Code != "" || now.Message != "":
		out.Code, out.Message = string(now.Code), now.Message
	default:
		out.Ready = true
	}
}
