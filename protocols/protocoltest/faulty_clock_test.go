package protocoltest

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
)

// Faults of clocks and samples. A fault whose name ends in -client or -server
// is of that role alone.

// allAcknowledged is when the client's protocol had everything acknowledged.
var allAcknowledged atomic.Pointer[time.Time]

// clockFault makes a driver's clocks or samples wrong, if fault is one of these.
func clockFault(fault string, p *contract.Parameters, edit func(func(map[string]any)), out *eventFilter) {
	for _, role := range []contract.Role{contract.RoleClient, contract.RoleServer} {
		if of, ok := strings.CutSuffix(fault, "-"+string(role)); ok {
			if p.Role != role {
				return
			}
			fault = of
		}
	}
	if factor, ok := strings.CutPrefix(fault, "clock-times-"); ok {
		if f, err := strconv.ParseFloat(factor, 64); err == nil {
			scaledClock(f, edit, out)
		}
		return
	}
	switch fault {
	case "clock-50ms-more":
		out.each = times(func(ns int64) int64 { return ns + int64(50*time.Millisecond) }, everyTime)
	case "clock-50ms-less":
		out.each = times(func(ns int64) int64 { return max(0, ns-int64(50*time.Millisecond)) }, everyTime)
	case "connect-of-1ms":
		out.each = times(func(int64) int64 { return 1e6 }, connectTimes)
	case "connect-of-an-hour":
		out.each = times(func(int64) int64 { return time.Hour.Nanoseconds() }, connectTimes)
	case "clock-from-connect":
		out.each = func(e *contract.Event) bool {
			if e.Result != nil {
				e.Result.ElapsedNS += e.Result.ConnectNS
				e.Result.Final.ElapsedNS += e.Result.ConnectNS
			}
			return true
		}
	case "clock-30ms-more":
		time.Sleep(100 * time.Millisecond) // the process's own time must not show it
		out.each = times(func(ns int64) int64 { return ns + int64(30*time.Millisecond) }, everyTime)
	case "clock-ends-at-ack":
		out.each = func(e *contract.Event) bool {
			if at := allAcknowledged.Load(); e.Result != nil && at != nil {
				less := time.Since(*at).Nanoseconds()
				e.Result.ElapsedNS -= less
				e.Result.Final.ElapsedNS -= less
			}
			return true
		}
	case "slow-samples":
		out.each = butFinal(out, func(x *contract.Sample) { x.ElapsedNS = x.ElapsedNS * 95 / 100 })
	case "counts-half":
		out.each = butFinal(out, func(x *contract.Sample) { x.SentBytes /= 2 })
	case "acknowledges-half":
		out.each = butFinal(out, func(x *contract.Sample) { half := x.SentBytes / 2; x.AckedBytes = &half })
	case "standing-samples":
		out.each = butFinal(out, func(x *contract.Sample) { x.ElapsedNS = min(x.ElapsedNS, 1e6) })
	case "no-interval-samples":
		edit(func(m map[string]any) { m["sample_interval_ms"] = 1e6 })
	case "fifth-of-samples":
		edit(func(m map[string]any) { m["sample_interval_ms"] = 5 * p.SampleIntervalMS })
	case "never-doubles":
		out.each = ownSamples(out, p, func(int) bool { return false })
	case "doubles-once":
		out.each = ownSamples(out, p, func(n int) bool { return n == samplesFull })
	case "doubles-at-100":
		out.each = ownSamples(out, p, func(n int) bool { return n%100 == 0 })
	}
}

// scaledClock is one that runs at a factor of real time, in all that the driver
// does by it.
func scaledClock(f float64, edit func(func(map[string]any)), out *eventFilter) {
	scale := func(ns int64) int64 { return int64(float64(ns) * f) }
	edit(func(m map[string]any) {
		if ms, ok := m["sample_interval_ms"].(float64); ok {
			m["sample_interval_ms"] = max(1, int(ms/f))
		}
		if t, ok := m["transfer"].(map[string]any); ok {
			if ms, ok := t["duration_ms"].(float64); ok {
				t["duration_ms"] = int(ms/f) + 1
			}
		}
	})
	out.each = times(scale, func(e *contract.Event) []*int64 { return append(everyTime(e), connectTimes(e)...) })
}

// connectTimes is how long it took to connect, in an event.
func connectTimes(e *contract.Event) []*int64 {
	switch {
	case e.Result != nil && e.Result.ConnectNS > 0:
		return []*int64{&e.Result.ConnectNS}
	case e.ConnectNS > 0:
		return []*int64{&e.ConnectNS}
	}
	return nil
}

// everyTime is what a transfer's clock shows in an event.
func everyTime(e *contract.Event) (out []*int64) {
	if e.Sample != nil {
		out = append(out, &e.Sample.ElapsedNS)
	}
	if e.Result != nil {
		out = append(out, &e.Result.ElapsedNS, &e.Result.Final.ElapsedNS)
	}
	return out
}

// times changes times of every event.
func times(change func(int64) int64, of func(*contract.Event) []*int64) func(*contract.Event) bool {
	return func(e *contract.Event) bool {
		for _, ns := range of(e) {
			*ns = change(*ns)
		}
		return true
	}
}

// butFinal changes the samples but for the last one. Each is written when the
// next event comes.
func butFinal(out *eventFilter, change func(*contract.Sample)) func(*contract.Event) bool {
	var last *contract.Event
	return func(e *contract.Event) bool {
		if last != nil {
			if e.Sample != nil {
				change(last.Sample)
			}
			out.put(last)
			last = nil
		}
		if e.Sample != nil {
			last = e
		}
		return e.Sample == nil
	}
}

// ownSamples writes samples at an interval that doubles after the n-th if it is so.
func ownSamples(out *eventFilter, p *contract.Parameters, doubles func(n int) bool) func(*contract.Event) bool {
	interval := time.Duration(max(1, p.SampleIntervalMS)) * time.Millisecond
	var mu sync.Mutex
	var last *contract.Event
	var began time.Time // of the clock, about
	quit := make(chan struct{})
	go func() {
		for n := 0; ; {
			mu.Lock()
			pause := interval - time.Since(began)%interval
			mu.Unlock()
			select {
			case <-quit:
				return
			case <-time.After(pause):
			}
			mu.Lock()
			if last != nil {
				last.Sample.ElapsedNS = max(last.Sample.ElapsedNS, time.Since(began).Nanoseconds())
				out.put(last)
				if n++; doubles(n) {
					interval *= 2
				}
			}
			mu.Unlock()
		}
	}()
	return func(e *contract.Event) bool {
		mu.Lock()
		defer mu.Unlock()
		if e.Sample != nil {
			if last == nil {
				began = time.Now().Add(-time.Duration(e.Sample.ElapsedNS))
			} else {
				e.Sample.ElapsedNS = max(e.Sample.ElapsedNS, last.Sample.ElapsedNS)
			}
			last = e
			return false
		}
		if e.Result != nil {
			close(quit)
			e.Result.Final.ElapsedNS = max(e.Result.Final.ElapsedNS, last.Sample.ElapsedNS)
			out.put(&contract.Event{Event: contract.KindSample, Transfer: e.Transfer, Sample: e.Result.Final})
		}
		return true
	}
}

// put writes an event.
func (f *eventFilter) put(e *contract.Event) {
	if line, err := json.Marshal(e); err == nil {
		_, _ = f.w.Write(append(line, '\n'))
	}
}

// tcpInfo is what the kernel says of a connection; zero where it says nothing.
func (c *faultyConn) tcpInfo() (info unix.TCPInfo) {
	raw, err := c.Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return info
	}
	_ = raw.Control(func(fd uintptr) {
		if i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			info = *i
		}
	})
	return info
}

// awaitAcknowledged notes when the other end's protocol has acknowledged everything.
func (c *faultyConn) awaitAcknowledged() {
	for {
		if i := c.tcpInfo(); i.Unacked == 0 && i.Notsent_bytes == 0 {
			now := time.Now()
			allAcknowledged.Store(&now)
			return
		}
		time.Sleep(time.Millisecond)
	}
}
