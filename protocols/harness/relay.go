package harness

import (
	"context"
	"io"
	"sync"
	"time"

	"linktrial/protocols/contract"
)

// Relay is what a driver in the role relay has opened.
type Relay struct {
	// Accept and Close are those of a [Listener].
	Accept func() (Stream, error)
	Close  func() error
	// Dial connects to the next address, as [Driver.Dial] does.
	Dial func(ctx context.Context) (Stream, error)
	// Buffer is how many bytes of each direction of a connection are held between
	// its two streams.
	Buffer int
}

// Stream is one side of a connection that a relay carries: a byte stream whose
// two directions end apart from each other. One goroutine reads while another writes.
type Stream interface {
	// Read returns [io.EOF] where the other end has ended its direction in order,
	// and there only: a connection that was reset is another error.
	io.Reader
	// Write takes more only as the other end takes it: a bounded number of bytes
	// is under way or waits.
	io.Writer
	// CloseWrite ends this end's direction: the other end reads [io.EOF] after what was written.
	CloseWrite() error
	// Close releases the stream after both directions have ended. It waits until
	// the other end has what was written, or until Abort is called.
	Close() error
	// Abort resets the stream from any goroutine: what has not been sent is
	// discarded, and waiting calls end with an error. After it, and after Close, it
	// has no effect.
	Abort()
	// Watch calls failed, from any goroutine, when the connection breaks, also
	// while nobody reads or writes. It is called once, before anything else.
	Watch(failed func(error))
}

// relay accepts connections until ctx ends.
func (r *run) relay(ctx context.Context) int {
	l, err := r.Relay(ctx, r.p)
	if err != nil {
		return r.ev.failed("", codeOf(err, contract.CodeListenFailed), err)
	}
	buffers := buffersOf(l.Buffer)
	return accept(ctx, r, relayListener{l}, func(ctx context.Context, near Stream) {
		if err := r.join(ctx, l, near, buffers); err != nil && ctx.Err() == nil {
			r.log.Info("a connection was reset", "error", err)
		}
	})
}

type relayListener struct{ r *Relay }

func (l relayListener) Accept() (Stream, error) { return l.r.Accept() }
func (l relayListener) Close() error            { return l.r.Close() }

// join carries one accepted connection. It returns when both of its streams are
// closed or reset.
func (r *run) join(ctx context.Context, l *Relay, near Stream, buffers *sync.Pool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	near.Watch(cancel)
	dctx := ctx
	if limit := after(time.Now(), r.p.Limits.ConnectMS); !limit.IsZero() {
		var done context.CancelFunc
		dctx, done = context.WithDeadline(ctx, limit)
		defer done()
	}
	far, err := l.Dial(dctx)
	if err != nil {
		near.Abort()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return err
	}
	far.Watch(cancel)
	return carry(ctx, cancel, near, far, buffers, time.Duration(r.p.Limits.TransferMS)*time.Millisecond)
}
