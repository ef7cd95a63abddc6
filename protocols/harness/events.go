package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"unicode/utf8"

	"linktrial/protocols/contract"
)

// maxMessage bounds an error's sentence, in bytes: it repeats input of others.
const maxMessage = 2 << 10

// events writes whole lines and blocks of payload, one write each, from any goroutine.
type events struct {
	mu  sync.Mutex
	w   io.Writer
	log *slog.Logger
}

func (e *events) write(v *contract.Event) {
	b, err := json.Marshal(v)
	if err != nil || len(b) > contract.MaxLine {
		// Only a driver's own Info or Sample can do this (NaN, endless detail).
		e.log.Error("event cannot be written", "event", v.Event, "bytes", len(b), "error", err)
		if v.Event == contract.KindSample {
			return
		}
		b, _ = json.Marshal(&contract.Event{Event: contract.KindError, Transfer: v.Transfer, Code: contract.CodeInternal,
			Message: "an event of kind " + string(v.Event) + " could not be written"})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.w.Write(append(b, '\n')); err != nil {
		e.log.Error("standard output failed", "error", err)
	}
}

// block hands payload over: b has it after [blockHead] bytes for the line that announces it.
func (e *events) block(transfer string, b []byte) {
	line := fmt.Appendf(nil, `{"event":"%s","transfer":"%s","bytes":%d}`+"\n", contract.KindPayload, transfer, len(b)-blockHead)
	b = b[blockHead-len(line):]
	copy(b, line)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.w.Write(b); err != nil {
		e.log.Error("standard output failed", "error", err)
	}
}

func (e *events) fail(transfer string, code contract.Code, err error) {
	msg := strings.ToValidUTF8(err.Error(), "�")
	if len(msg) > maxMessage {
		msg = msg[:maxMessage]
		for !utf8.ValidString(msg) {
			msg = msg[:len(msg)-1]
		}
	}
	e.write(&contract.Event{Event: contract.KindError, Transfer: transfer, Code: code, Message: msg})
}

// failed is fail for what ends the process; it returns the exit code.
func (e *events) failed(transfer string, code contract.Code, err error) int {
	e.fail(transfer, code, err)
	if code == contract.CodeUnsupported {
		return contract.ExitUnsupported
	}
	return contract.ExitFailed
}
