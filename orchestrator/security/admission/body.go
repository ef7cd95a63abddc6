package admission

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"connectrpc.com/connect"
)

// body is what is read of a request, as bytes arrive: before anything is
// decompressed or decoded.
type body struct {
	io.ReadCloser
	call  *call
	until time.Time // while it is not known who calls
	read  int64
	ended error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.ended != nil {
		return 0, b.ended
	}
	known, bounds := b.call.known.Load(), b.call.gate.bounds
	if !known {
		if left := bounds.UnknownBytes - b.read; int64(len(p)) > left+1 {
			p = p[:left+1]
		}
	}
	until, wait := b.until, bounds.UnknownTime
	if known {
		wait = bounds.StalledTime
		until = time.Now().Add(wait)
	}
	_ = b.call.control.SetReadDeadline(until) // a controller that knows no deadlines has none
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch {
	case !known && b.read > bounds.UnknownBytes:
		n, err = 0, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the request has more than %d bytes, expected at most as many before it is known who makes it", bounds.UnknownBytes))
	case errors.Is(err, os.ErrDeadlineExceeded):
		what := "the request did not arrive within %s: send it again"
		if known {
			what = "nothing of the request has arrived for %s: send it again"
		}
		err = connect.NewError(connect.CodeDeadlineExceeded, fmt.Errorf(what, wait))
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the request ended after %d bytes of its body, of which it said that there are more: send it again", b.read))
	case errors.Is(err, io.EOF):
		// The answer may take as long as it takes; HTTP/1 reads on to learn when the
		// caller leaves.
		_ = b.call.control.SetReadDeadline(time.Time{})
	}
	b.ended = err
	return n, err
}
