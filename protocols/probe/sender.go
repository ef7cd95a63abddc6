package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/measure"
	"linktrial/protocols/probe/pattern"
	"linktrial/protocols/probe/wire"
)

// Pauses between two datagrams that ask the same.
const (
	askAgain    = 250 * time.Millisecond
	askAgainMax = 2 * time.Second
)

// sampler takes the samples of a probe ([harness.Reporter]).
type sampler interface {
	Sample(transfer string, s *contract.Sample)
}

// sender is the end of a probe that sends its packets: the client, or for a probe from
// the server that.
type sender struct {
	id         string
	key        *wire.Key
	short      bool // packets are those of messages
	conn       way
	header     int        // bytes of IP and UDP before a packet
	largest    func() int // the most payload that a packet can have, of DCCP; nil: of UDP
	out        sampler
	log        *packetLog
	lasts      time.Duration // 0: until it is ended
	limit      time.Duration // of the whole probe; 0: none
	interval   time.Duration // of samples
	errRefused error         // the other end's node refuses packets

	clock clock
	sent  wire.Sent
	begin time.Time // of the probe's clock
	until time.Time // the limit; zero: none
}

// ask sends a datagram, again and again, until an answer is taken, the limit has
// passed or ctx has ended.
func ask(ctx context.Context, conn way, what []byte, limit time.Time, take func(b []byte, arrived int64) bool) (answered bool, err error) {
	var buf [64 << 10]byte
	for pause := askAgain; ctx.Err() == nil; pause = min(2*pause, askAgainMax) {
		if _, err := conn.Write(what); err != nil && !errors.Is(err, errHeld) {
			return false, err
		}
		until := time.Now().Add(pause)
		if !limit.IsZero() && limit.Before(until) {
			until = limit
		}
		if err := conn.SetReadDeadline(until); err != nil {
			return false, err
		}
		for ctx.Err() == nil {
			n, arrived, err := conn.receive(buf[:])
			if isTimeout(err) {
				break
			}
			if err != nil {
				return false, err
			}
			if take(buf[:n], arrived) {
				return true, nil
			}
		}
		if !limit.IsZero() && !time.Now().Before(limit) {
			return false, nil
		}
	}
	return false, nil
}

// run sends the packets, until they end or stop does, and fetches the metrics.
func (s *sender) run(ctx context.Context, stop <-chan struct{}, spec *pattern.Spec) (*contract.ProbeMetrics, error) {
	s.begin = time.Now()
	s.clock.begin = s.begin
	if s.limit > 0 {
		s.until = s.begin.Add(s.limit)
	}
	s.short = spec.Pattern == pattern.Messages
	send := s.packets
	if spec.Pattern == pattern.Capacity {
		send = s.capacity
	}
	if err := send(stop, spec); err != nil {
		return nil, err
	}
	s.sent.ClockStep = s.clock.stepNS()
	limit := time.Now().Add(drain)
	if !s.until.IsZero() && s.until.Before(limit) {
		limit = s.until
	}
	var metrics *contract.ProbeMetrics
	unknown := false
	answered, err := ask(ctx, s.conn, s.key.End(s.sent), limit, func(b []byte, _ int64) (ok bool) {
		if unknown = s.key.IsUnknown(b); unknown {
			return true
		}
		metrics, ok = s.key.ParseMetrics(b)
		return ok
	})
	switch {
	case isRefusal(err):
		return nil, s.errRefused
	case err != nil:
		return nil, err
	case unknown:
		return nil, errUnknown
	case !answered:
		return nil, harness.Failf(contract.CodeTransferTimeout, "the values of the receiving end did not arrive within %d s of the last packet", contract.ProbeDrainMS/1000)
	}
	return metrics, nil
}

// drain is how long the metrics may take after the last packet.
const drain = contract.ProbeDrainMS * time.Millisecond

// errUnknown: the server has forgotten the probe.
var errUnknown = harness.Failf(contract.CodeReset, "the server does not know this probe: it was started again meanwhile")

// isRefusal reports whether an error says that the other end has ended.
func isRefusal(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ENOTCONN)
}

// packets sends the pattern until its time is up or it is stopped.
func (s *sender) packets(stop <-chan struct{}, spec *pattern.Spec) error {
	end := s.lasts
	if end == 0 {
		end = time.Duration(1<<63 - 1)
		if s.limit > 0 { // the metrics must still come within it
			end = max(0, s.limit-drain)
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	beat := harness.NewBeat(s.interval)
	source := spec.Source(s.key.Seed)
	next := source.Next()
	buf := make([]byte, pattern.MaxBytes)
	for s.sent.Packets < measure.MaxPackets {
		due := min(next.At, beat.Next(), end)
		timer.Reset(time.Until(s.begin.Add(due)))
		select {
		case <-stop:
			return nil
		case <-timer.C:
		}
		elapsed := time.Since(s.begin)
		if elapsed >= end {
			return nil
		}
		if elapsed >= beat.Next() {
			s.out.Sample(s.id, s.sample(elapsed))
			beat.Taken(elapsed)
		}
		if elapsed < next.At {
			continue
		}
		if err := s.packet(buf[:next.Bytes]); err != nil {
			return err
		}
		next = source.Next()
	}
	return nil
}

// packet sends the next packet. One that cannot be sent is lost like any other; one
// that the congestion control holds back has no number, and is none of the losses.
func (s *sender) packet(b []byte) error {
	at, _ := s.clock.now()
	n := s.sent.Packets
	if s.short {
		s.key.Short(b, uint32(n), at)
	} else {
		s.key.Packet(b, 0, uint32(n), at)
	}
	_, err := s.conn.Write(b)
	if errors.Is(err, errHeld) {
		s.sent.Unsent++
		s.log.row(-1, at, int64(len(b)))
		return nil
	}
	s.sent.Packets++
	s.sent.Bytes += int64(len(b))
	s.log.row(n, at, int64(len(b)))
	switch {
	case errors.Is(err, syscall.EMSGSIZE):
		if s.largest != nil {
			return harness.Failf(contract.CodeUnreachable, "a packet of %d bytes is too large for the way to the other end, on which DCCP carries at most %d", len(b), s.largest())
		}
		return harness.Failf(contract.CodeUnreachable, "a packet of %d bytes is too large for the way to the other end", len(b))
	case errors.Is(err, syscall.ECONNREFUSED), s.largest != nil && err != nil: // a connection that has ended
		return s.errRefused
	}
	return nil
}

func (s *sender) sample(elapsed time.Duration) *contract.Sample {
	more := map[string]float64{"sent_packets": float64(s.sent.Packets)}
	if s.largest != nil {
		more["unsent_packets"] = float64(s.sent.Unsent)
	}
	return &contract.Sample{ElapsedNS: elapsed.Nanoseconds(), SentBytes: s.sent.Bytes, More: more}
}
