package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// qlogExtension is what qlog calls its files of JSON text sequences.
const qlogExtension = "sqlog"

// maxNameless is how much of a log a server keeps in memory until it has read whose
// transfer it is, in bytes. A handshake is some kilobytes.
const maxNameless = 1 << 20

// recordBegin is the first byte of every record of a JSON text sequence (RFC 7464).
const recordBegin = 0x1e

// wantsLog reports whether the plan asks for logs; the error says that there is no
// folder for them.
func wantsLog(p *contract.Parameters) (bool, error) {
	on, _ := p.Options["qlog"].(bool)
	if on && p.LogFolder == "" {
		return false, harness.Unsupported("options.qlog is true, and this driver has got no folder to write into (log_folder): run it as a process, because a driver in a container has none where the container engine does not see the files of the agent")
	}
	return on, nil
}

// logFile is the log of one connection. It keeps what it gets until it knows whose
// transfer it is. Every record is in the file as a whole or not at all. What goes
// wrong ends the log and not the transfer.
type logFile struct {
	p    *contract.Parameters
	most int64 // size, in bytes

	mu      sync.Mutex
	record  bytes.Buffer // that has not ended
	waiting bytes.Buffer // records, until there is a file
	size    int64        // of all records that ended
	over    bool         // nothing is written any more
	file    *os.File     // nil until the transfer is known
	out     *bufio.Writer
}

func newLogFile(p *contract.Parameters) *logFile { return &logFile{p: p, most: contract.MaxLogFile} }

// name gives the log its file.
func (l *logFile) name(transfer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.file != nil {
		return
	}
	f, err := os.Create(l.p.LogFile(transfer, qlogExtension))
	if err != nil {
		l.stop(err)
		return
	}
	l.file, l.out = f, bufio.NewWriterSize(f, 64<<10)
	if _, err := l.waiting.WriteTo(l.out); err != nil {
		l.stop(err)
	}
	l.waiting = bytes.Buffer{}
}

// Write implements [io.Writer]. It never fails: the library would only complain.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(b) > 0 && b[0] == recordBegin {
		l.endRecord()
	}
	if !l.over {
		l.record.Write(b)
	}
	return len(b), nil
}

func (l *logFile) endRecord() {
	if l.over || l.record.Len() == 0 {
		return
	}
	l.size += int64(l.record.Len())
	switch {
	case l.size > l.most:
		l.stop(fmt.Errorf("it has reached %d bytes", l.most))
	case l.file == nil && l.size > maxNameless:
		l.stop(fmt.Errorf("it has reached %d bytes before the transfer's header", maxNameless))
	case l.file == nil:
		_, _ = l.record.WriteTo(&l.waiting) // memory
	default:
		if _, err := l.record.WriteTo(l.out); err != nil {
			l.stop(err)
		}
	}
}

// stop ends the log before its connection.
func (l *logFile) stop(reason error) {
	l.over = true
	l.record, l.waiting = bytes.Buffer{}, bytes.Buffer{}
	slog.Warn("the log ends here; its transfer goes on", "folder", l.p.LogFolder, "error", reason)
}

// Close implements [io.Closer]: the connection has ended. A log whose transfer is
// not known leaves nothing.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endRecord()
	l.over = true
	l.record, l.waiting = bytes.Buffer{}, bytes.Buffer{}
	if l.file == nil {
		return nil
	}
	if err := errors.Join(l.out.Flush(), l.file.Close()); err != nil {
		slog.Warn("the end of the log could not be written", "folder", l.p.LogFolder, "error", err)
	}
	return nil
}

// trace begins the log of a connection.
func (l *logFile) trace(client bool, id quic.ConnectionID) qlogwriter.Trace {
	t := qlogwriter.NewConnectionFileSeq(l, client, id)
	go t.Run() // until the connection has ended
	return t
}

// logKey is the key of a connection's log in its context.
type logKey struct{}

// withLogs makes a server write a log of every connection.
func withLogs(p *contract.Parameters, t *quic.Transport, c *quic.Config) {
	t.ConnContext = func(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
		return context.WithValue(ctx, logKey{}, newLogFile(p)), nil
	}
	c.Tracer = func(ctx context.Context, _ bool, id quic.ConnectionID) qlogwriter.Trace {
		return ctx.Value(logKey{}).(*logFile).trace(false, id)
	}
}

// clientTracer is a client's: what takes the values of samples, and the log, each
// where it is wanted.
func clientTracer(p *contract.Parameters, seen *recovery, logs bool) func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace {
	if seen == nil && !logs {
		return nil
	}
	return func(_ context.Context, _ bool, id quic.ConnectionID) qlogwriter.Trace {
		if !logs {
			return seen
		}
		l := newLogFile(p)
		l.name(p.Transfer.ID)
		t := l.trace(true, id)
		if seen == nil {
			return t
		}
		return &both{seen, t}
	}
}

// both are two traces of one connection.
type both struct {
	seen *recovery
	log  qlogwriter.Trace
}

// AddProducer implements [qlogwriter.Trace].
func (b *both) AddProducer() qlogwriter.Recorder {
	return &bothRecorders{b.seen.AddProducer(), b.log.AddProducer()}
}

type bothRecorders struct{ seen, log qlogwriter.Recorder }

// RecordEvent implements [qlogwriter.Recorder].
func (b *bothRecorders) RecordEvent(e qlogwriter.Event) {
	b.seen.RecordEvent(e)
	b.log.RecordEvent(e)
}

// Close implements [qlogwriter.Recorder].
func (b *bothRecorders) Close() error { return errors.Join(b.seen.Close(), b.log.Close()) }
