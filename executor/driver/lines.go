// Package driver is what the executor does with a driver process whatever its
// role: it reads the events on the driver's standard output within the limits
// of the driver contract, and ends the process with SIGTERM and then SIGKILL.
package driver

import (
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/time/rate"

	"linktrial/executor/journal"
	"linktrial/protocols/contract"
)

// What a driver may write on its standard output before it counts as a flood:
// ten flows sampled every 10 ms stay far below it.
const (
	linesPerSecond = 2000
	linesBurst     = 8000
	bytesPerSecond = 2 << 20
	bytesBurst     = 8 << 20
)

// Clock is the node's; [linktrial/executor.Clock] is one.
type Clock interface {
	Now() time.Time
	Timer(d time.Duration) (fired <-chan time.Time, stop func())
}

// Line is one event of a driver, or the fault that ended the reading.
type Line struct {
	Event *contract.Event // nil: a fault
	Size  int             // of the line, bytes
	At    time.Time       // when it was read, by the node's clock
	// Reason of a fault, [journal.ReasonGarbage] or [journal.ReasonFlood], and
	// what is wrong.
	Reason, Message string
}

// Payload takes what a server hands over.
type Payload interface {
	// Take takes a block of a transfer's payload; b is good until it returns. The error is
	// what is wrong with it.
	Take(transfer string, b []byte) error
	// Counted is called with each count of payload that the server says it has received of
	// a transfer, when all that it handed over before has been taken.
	Counted(transfer string, bytes int64)
}

// Lines reads a driver's events until its output ends or breaks the contract;
// the last line then names the fault, and nothing more is read, so that the
// driver must be ended. The channel must be read until it is closed. Payload between the
// events goes to payload before the next event is read; nil: there must be none.
func Lines(out io.ReadCloser, clock Clock, payload Payload) <-chan Line {
	c := make(chan Line, 64)
	go func() {
		defer close(c)
		defer out.Close()
		r := contract.NewOutput(out)
		lines := rate.NewLimiter(linesPerSecond, linesBurst)
		bytes := rate.NewLimiter(bytesPerSecond, bytesBurst)
		for {
			e, size, block, err := r.Next()
			var breach *contract.BreachError
			switch {
			case errors.As(err, &breach):
			case err != nil:
				// The process ended, for which the reader waits elsewhere; a
				// killed process may leave half a line.
				return
			case e.Event == contract.KindPayload && payload == nil:
				err = errors.New("payload of a driver that is no server of a transfer")
			case e.Event == contract.KindPayload:
				// As much as the radio carries, of transfers whose size is known: no flood.
				err = payload.Take(e.Transfer, block)
			case payload != nil:
				count(e, payload)
			}
			if err != nil {
				c <- Line{Reason: journal.ReasonGarbage, Message: err.Error()}
				return
			}
			if e.Event == contract.KindPayload {
				continue
			}
			now := clock.Now()
			if !lines.AllowN(now, 1) || !bytes.AllowN(now, size) {
				c <- Line{Reason: journal.ReasonFlood, Message: fmt.Sprintf("over %d lines or %d bytes per second on standard output", linesPerSecond, bytesPerSecond)}
				return
			}
			c <- Line{Event: e, Size: size, At: now}
		}
	}()
	return c
}

// count hands on how much payload an event of a server says that it has received.
func count(e *contract.Event, payload Payload) {
	switch {
	case e.Sample != nil:
		payload.Counted(e.Transfer, e.Sample.SentBytes)
	case e.Result != nil && e.Result.Final != nil:
		payload.Counted(e.Transfer, e.Result.Final.SentBytes)
	}
}
