package harness

import (
	"context"
	"time"

	"linktrial/protocols/contract"
)

// Packets is what a driver of [contract.KindProbe] implements.
type Packets struct {
	// Listen opens p.Local. Probes are taken once it has returned.
	Listen func(ctx context.Context, p *contract.Parameters) (PacketServer, error)
	// Send carries one probe from its first packet to its result, which it reports.
	// The end of ctx ends the packets; the result still comes.
	Send func(ctx context.Context, p *contract.Parameters, r *Reporter) error
}

// PacketServer takes probes.
type PacketServer interface {
	// Serve returns nil when ctx has ended; it has reported the probes that were
	// running then as aborted.
	Serve(ctx context.Context, r *Reporter) error
	Close() error
}

// Reporter writes the events of probes, from any goroutine.
type Reporter struct{ ev *events }

// Connected says that both ends know of a probe; connect is the client's.
func (r *Reporter) Connected(transfer string, connect time.Duration) {
	r.ev.write(&contract.Event{Event: contract.KindConnected, Transfer: transfer, ConnectNS: connect.Nanoseconds()})
}

// Sample is the state of a probe.
func (r *Reporter) Sample(transfer string, s *contract.Sample) {
	r.ev.write(&contract.Event{Event: contract.KindSample, Transfer: transfer, Sample: s})
}

// Result ends a probe well.
func (r *Reporter) Result(transfer string, x *contract.Result) {
	r.ev.write(&contract.Event{Event: contract.KindResult, Transfer: transfer, Result: x})
}

// Fail ends a probe otherwise.
func (r *Reporter) Fail(transfer string, err error) {
	r.ev.fail(transfer, codeOf(err, contract.CodeInternal), err)
}

// Beat says when a transfer's samples are due.
type Beat struct{ s schedule }

// NewBeat begins with a first sample one interval after the clock's start.
func NewBeat(interval time.Duration) *Beat {
	return &Beat{schedule{next: interval, interval: interval}}
}

// Next is when the next sample is due, after the clock's start.
func (b *Beat) Next() time.Duration { return b.s.next }

// Taken notes a sample at the moment t.
func (b *Beat) Taken(t time.Duration) { b.s.taken(t) }

// packetServer takes probes until ctx ends.
func (r *run) packetServer(ctx context.Context) int {
	s, err := r.Packets.Listen(ctx, r.p)
	if err != nil {
		return r.ev.failed("", codeOf(err, contract.CodeListenFailed), err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			r.log.Debug("close", "error", err)
		}
	}()
	r.ev.write(&contract.Event{Event: contract.KindReady, Info: r.info})
	if err := s.Serve(ctx, &Reporter{r.ev}); err != nil {
		return r.ev.failed("", codeOf(err, contract.CodeInternal), err)
	}
	return contract.ExitOK
}

// packetClient carries one probe.
func (r *run) packetClient(ctx context.Context) int {
	r.ev.write(&contract.Event{Event: contract.KindReady, Info: r.info})
	if err := r.Packets.Send(ctx, r.p, &Reporter{r.ev}); err != nil {
		return r.ev.failed(r.p.Transfer.ID, dialCode(err), err)
	}
	return contract.ExitOK
}
