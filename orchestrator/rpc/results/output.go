package results

import (
	"context"
	"errors"
	"sync"
	"time"

	"connectrpc.com/connect"

	"linktrial/orchestrator/campaign/nodes"
)

const (
	// chunkSize is how much of a file is in one message. A few are in memory at a time.
	chunkSize = 256 << 10
	// stalledAfter is how long a file waits for a caller that takes nothing of it.
	stalledAfter = 2 * time.Minute
	// tellEvery is how often a caller hears how much is done while there is no content.
	tellEvery = time.Second
)

var errStalled = connect.NewError(connect.CodeAborted, errors.New("the caller took nothing of the file for two minutes"))

// chunk is a piece of a file, and which share of the work is done with it.
type chunk struct {
	content []byte
	done    float64
}

// output takes the content of a file and passes it on in chunks.
type output struct {
	gone   <-chan struct{} // closed when nobody takes chunks any more
	chunks chan<- chunk
	buf    []byte
	done   float64
	told   time.Time
}

// Write blocks while the caller does not take what was written before.
func (o *output) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := min(len(p), chunkSize-len(o.buf))
		o.buf = append(o.buf, p[:part]...)
		p, n = p[part:], n+part
		if len(o.buf) == chunkSize {
			if err := o.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// share notes which share of the work is done, 0 to 1.
func (o *output) share(done float64) error {
	o.done = done
	if time.Since(o.told) < tellEvery {
		return nil
	}
	return o.flush()
}

func (o *output) flush() error {
	stalled := time.NewTimer(stalledAfter)
	defer stalled.Stop()
	select {
	case o.chunks <- chunk{o.buf, o.done}:
		o.buf, o.told = make([]byte, 0, chunkSize), time.Now()
		return nil
	case <-o.gone:
		return context.Canceled
	case <-stalled.C:
		return errStalled
	}
}

// pass calls send with what write writes. They are two goroutines: a caller that takes
// nothing holds send up for as long as its connection lasts, but no connection to the
// database. It returns once both have ended.
func pass(ctx context.Context, stopping <-chan struct{}, write func(context.Context, *output) error, send func(chunk) error) error {
	ctx, cancel := context.WithCancel(ctx)
	chunks := make(chan chunk, 1)
	var failed error
	var writing sync.WaitGroup
	defer writing.Wait()
	defer cancel()
	writing.Go(func() {
		defer close(chunks)
		out := &output{gone: ctx.Done(), chunks: chunks, buf: make([]byte, 0, chunkSize), told: time.Now()}
		if failed = write(ctx, out); failed == nil {
			out.done = 1
			failed = out.flush()
		}
	})
	for {
		select {
		case c, more := <-chunks:
			if !more {
				return failed
			}
			if err := send(c); err != nil {
				return err
			}
		case <-stopping:
			return nodes.ErrStopping
		}
	}
}
