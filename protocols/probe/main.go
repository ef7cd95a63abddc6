// Command probe is the driver of probes over UDP and DCCP: packets at a stated rate or
// pattern, whose delays and losses the receiving end measures. Comes in and goes
// out: the driver contract (docs/driver-contract.md). May import: the contract, the
// harness, its own packages, protocoltest (tests).
//
// It stamps packets with the time of day of the sending node, and takes that of the
// receiving node's kernel at their arrival. What separates these two clocks is in
// every delay; Linktrial knows how much that can be.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/pattern"
)

//go:embed driver.yaml
var manifest []byte

func main() {
	harness.Main(manifest, harness.Driver{Query: query, Packets: &harness.Packets{Listen: listen, Send: carry}})
}

func query(_ context.Context, p *contract.Parameters) (*contract.Info, error) {
	if _, err := pattern.Read(p.Options); err != nil {
		return nil, harness.Failf(contract.CodeBadParameters, "%w", err)
	}
	if p.Options["packets"] == true && p.LogFolder == "" && (p.Role == contract.RoleClient || p.Role == contract.RoleServer) {
		return nil, harness.Unsupported("option packets: there is no folder for logs here (log_folder)")
	}
	here := &contract.Info{Implementation: implementation, Choices: map[string][]string{"transport": {pattern.UDP}}, Detail: map[string]string{}}
	ccids, err := ccidsHere()
	if err == nil {
		here.Choices["transport"] = append(here.Choices["transport"], pattern.DCCP)
		here.Detail["transport="+pattern.DCCP] = fmt.Sprintf("the kernel's, CCIDs %v", ccids)
	} else {
		here.Detail["transport="+pattern.DCCP] = contract.NotSupported + err.Error()
	}
	switch transport := p.Options["transport"]; {
	case p.Role == contract.RoleQuery, transport == nil, transport == pattern.UDP:
	case transport != pattern.DCCP:
		return nil, harness.Unsupported("transport %v: expected %s or %s", transport, pattern.UDP, pattern.DCCP)
	case err != nil:
		return nil, err
	case !slices.Contains(ccids, settingsOf(p).ccid):
		return nil, harness.Unsupported("this kernel's DCCP has the congestion controls (CCIDs) %v, not %d", ccids, settingsOf(p).ccid)
	}
	return here, nil
}

const implementation = "linux-kernel"

// clock finds steps of the time of day: it compares it with a monotonic clock.
type clock struct {
	begin time.Time
	step  time.Duration
}

// now is the time of day in nanoseconds since 1970.
func (c *clock) now() (at int64, elapsed time.Duration) {
	t := time.Now()
	elapsed = t.Sub(c.begin)
	c.step = max(c.step, (t.Round(0).Sub(c.begin.Round(0)) - elapsed).Abs())
	return t.UnixNano(), elapsed
}

// stepNS is the most that the time of day moved against the monotonic clock. What
// is below a microsecond is that the two are not read in one instant.
func (c *clock) stepNS() int64 {
	if c.step < time.Microsecond {
		return 0
	}
	return c.step.Nanoseconds()
}

// packetLog is the file of a probe's packets at one end; nil: none is wanted.
type packetLog struct {
	file *os.File
	w    *bufio.Writer
	left int64 // bytes that still fit
}

// The columns of both ends' logs.
const (
	sentColumns    = "number,sent_ns,bytes"
	arrivedColumns = "number,sent_ns,arrived_ns,bytes,first"
)

func openLog(p *contract.Parameters, transfer, columns string) (*packetLog, error) {
	if p.Options["packets"] != true {
		return nil, nil
	}
	f, err := os.Create(p.LogFile(transfer, "csv"))
	if err != nil {
		return nil, fmt.Errorf("log of the probe's packets: %w", err)
	}
	l := &packetLog{f, bufio.NewWriterSize(f, 64<<10), contract.MaxLogFile}
	l.line([]byte(columns))
	return l, nil
}

func (l *packetLog) row(values ...int64) {
	if l == nil {
		return
	}
	var b []byte
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, v, 10)
	}
	l.line(b)
}

func (l *packetLog) line(b []byte) {
	if l.left -= int64(len(b) + 1); l.left < 0 {
		return // a log that is full stops, and the probe goes on
	}
	_, _ = l.w.Write(append(b, '\n')) // and so does one that cannot be written
}

func (l *packetLog) close() {
	if l != nil {
		_ = l.w.Flush()
		_ = l.file.Close()
	}
}
