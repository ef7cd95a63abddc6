package path

import (
	"bufio"
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/executor"
	"linktrial/internal/backoff"
)

// Bounds of a port's check.
const (
	maxProbes  = 24          // a few more than the executor asks for
	watchTime  = time.Minute // for which a node counts after the last question
	firstPort  = 20000       // of probes: kernels give programs other ones (32768 and above)
	probePorts = 8000
	leastPort  = 5001 // of listeners
	// leastStep is between two packets: within a few milliseconds both agents could be
	// late at a busy machine for all of them, and the port would pass for a blocked one.
	leastStep = 50 * time.Millisecond
)

// Port implements [executor.Paths].
func (p *Paths) Port(ctx context.Context, ends executor.PathEnds, method executor.PathMethods, q executor.PortQuestion, enough func(*executor.PortExchange) bool) (out executor.PortExchange) {
	q.Check = rand.Uint32()
	ask := func(limit time.Duration) bool {
		actx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		x := p.Exchange(actx, ends, method, executor.PathQuestion{Port: &q})
		if x.Node == nil || x.Node.Port == nil {
			return false
		}
		out.Far = x.Node.Port
		return true
	}
	began := time.Now()
	if !ask(longestFirst) || out.Far.Unknown != "" {
		return out
	}
	took := time.Since(began)
	e := End{Address: ends.From, Device: p.Device, Key: p.Key}
	w, err := openWatch(ctx, e, out.Far.Protocol, q.Port, false)
	if err != nil {
		out.Near.Unknown = err.Error()
		return out
	}
	defer w.close()
	pace := &exchange{rate: p.Rate}
	step := max(pace.pause(smallBytes), 2*took, leastStep)
	for i, number := range numbers(&p.Key, maxProbes) {
		next := time.Now().Add(step)
		fault := w.probe(ends, q.Port, number)
		out.Asked++
		if ask(step) {
			out.Answered++
		}
		out.Near = w.counted()
		out.Near.Sent, out.Near.Fault = i+1, fault
		if enough(&out) || !backoff.Sleep(ctx, time.Until(next)) {
			break
		}
	}
	return out
}

// longestFirst is how long the first question may take.
const longestFirst = 10 * time.Second

// probe sends a packet to the port; fault is why this node could not.
func (w *watch) probe(ends executor.PathEnds, port int, number uint32) (fault string) {
	from, err := addrPort(ends.From, firstPort+rand.IntN(probePorts))
	if err != nil {
		return ""
	}
	to, err := addrPort(ends.To, port)
	if err != nil {
		return ""
	}
	p := packet{protocol: w.protocol, from: from, to: to, number: number}
	w.expect(from.Port())
	zone := netip.MustParseAddr(ends.To).Zone() // it could be parsed above
	_, err = w.raw.WriteTo(p.encode(), &net.IPAddr{IP: to.Addr().AsSlice(), Zone: zone})
	return faultOf(err)
}

// portWatch is the count that a responder keeps of the port that was asked for last.
type portWatch struct {
	end End

	mu    sync.Mutex
	q     executor.PortQuestion
	watch *watch
	until *time.Timer
}

// seen is what was counted of a port since the first question about it.
func (p *portWatch) seen(ctx context.Context, q executor.PortQuestion) *executor.PortCounts {
	if q.Port < leastPort || q.Port >= Port {
		return &executor.PortCounts{Unknown: "no port of listeners"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watch != nil && p.q != q {
		p.closeLocked()
	}
	if p.watch == nil {
		w, err := openWatch(ctx, p.end, protocolOf(q), q.Port, true)
		if err != nil {
			return &executor.PortCounts{Unknown: shorten(err.Error(), 80)}
		}
		p.q, p.watch = q, w
		p.until = time.AfterFunc(watchTime, p.close)
	}
	p.until.Reset(watchTime)
	c := p.watch.counted()
	return &c
}

func (p *portWatch) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked()
}

func (p *portWatch) closeLocked() {
	if p.watch != nil {
		p.until.Stop()
		p.watch.close()
		p.watch = nil
	}
}

// protocolOf is the IP protocol of the packets that a listener of this node takes. SCTP's
// listener is the kernel's where the kernel has one at the port, else it is over UDP
// (RFC 6951).
func protocolOf(q executor.PortQuestion) int {
	switch q.Network {
	case "tcp":
		return unix.IPPROTO_TCP
	case "sctp":
		if b, err := os.ReadFile("/proc/net/sctp/eps"); err == nil && sctpAt(string(b), q.Port) {
			return unix.IPPROTO_SCTP
		}
	}
	return unix.IPPROTO_UDP
}

// sctpAt reports whether the kernel's list of SCTP's endpoints has one at a port: the sixth
// column, LPORT (net/sctp/proc.c).
func sctpAt(list string, port int) bool {
	for lines := bufio.NewScanner(strings.NewReader(list)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 5 && f[5] == strconv.Itoa(port) {
			return true
		}
	}
	return false
}
