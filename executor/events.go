package executor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/time/rate"

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

// driverLine is one line of a driver, or the fault that ended the listening.
type driverLine struct {
	event   *contract.Event
	size    int // of the line, bytes
	reason  string
	message string
}

// listen reads a driver's events until its output ends or it breaks the
// contract; the last item then names the fault, and nothing more is read, so
// that the driver must be ended. The channel must be read until it is closed.
func listen(out io.ReadCloser, clock Clock) <-chan driverLine {
	c := make(chan driverLine, 64)
	go func() {
		defer close(c)
		defer out.Close()
		br := bufio.NewReaderSize(out, contract.MaxLine+2)
		lines, bytes := rate.NewLimiter(linesPerSecond, linesBurst), rate.NewLimiter(bytesPerSecond, bytesBurst)
		for {
			line, err := br.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				c <- driverLine{reason: ReasonGarbage, message: contract.ErrLineTooLong.Error()}
				return
			}
			if err != nil {
				// The end of the process, which Done tells better; half a line
				// is what a killed process leaves.
				return
			}
			now := clock.Now()
			if !lines.AllowN(now, 1) || !bytes.AllowN(now, len(line)) {
				c <- driverLine{reason: ReasonFlood, message: fmt.Sprintf("over %d lines or %d bytes per second on standard output", linesPerSecond, bytesPerSecond)}
				return
			}
			e, err := contract.ParseEvent(line)
			if err != nil {
				c <- driverLine{reason: ReasonGarbage, message: fmt.Sprintf("%v: %.120q", err, line)}
				return
			}
			c <- driverLine{event: e, size: len(line)}
		}
	}()
	return c
}

// ender takes a process through SIGTERM and SIGKILL. fired is to be selected
// on; the zero value never fires.
type ender struct {
	proc   Process
	clock  Clock
	fired  <-chan time.Time
	stop   func()
	asked  bool // SIGTERM was sent
	killed bool
}

// in sets the moment of the next step.
func (e *ender) in(d time.Duration) {
	e.release()
	e.fired, e.stop = e.clock.Timer(max(0, d))
}

func (e *ender) release() {
	if e.stop != nil {
		e.stop()
	}
	e.fired, e.stop = nil, nil
}

// step sends the next stronger signal.
func (e *ender) step() {
	switch {
	case !e.asked:
		e.asked = true
		e.proc.Terminate()
		e.in(termGrace)
	case !e.killed:
		e.kill()
	}
}

func (e *ender) kill() {
	e.release()
	e.asked, e.killed = true, true
	e.proc.Kill()
}
