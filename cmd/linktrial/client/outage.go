package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	"linktrial/internal/backoff"
	"linktrial/internal/unit"
)

const (
	// askAgain and askAgainMax are the first and the longest pause before a command that
	// waits asks the orchestrator again.
	askAgain    = 250 * time.Millisecond
	askAgainMax = 2 * time.Second
	// sayAgain is how often it says that it still waits.
	sayAgain = 30 * time.Second
)

// Outage says what is down, and since when, while a command waits for the orchestrator.
// Its methods may be called from several goroutines.
type Outage struct {
	base string
	say  func(line string)
	now  func() time.Time

	mu    sync.Mutex
	since time.Time // zero: the orchestrator answers
	told  time.Time
	kind  outageKind
}

type outageKind int

const (
	noContact outageKind = iota
	cannotAnswer
	silent
)

// NewOutage returns an outage that has not begun. Lines for people go to say.
func NewOutage(base string, say func(line string)) *Outage {
	return &Outage{base: base, say: say, now: time.Now}
}

// Failed notes that a call failed with an error that is not [Final].
func (o *Outage) Failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	kind, what := noContact, "no contact with the orchestrator at "+o.base
	var ce *connect.Error
	if errors.As(err, &ce) && connect.IsWireError(err) {
		kind, what = cannotAnswer, ce.Message()
	}
	began := o.since.IsZero()
	if began {
		o.since = now
	} else if kind == o.kind && now.Sub(o.told) < sayAgain {
		return
	}
	o.kind, o.told = kind, now
	line := fmt.Sprintf("since %s: %s", unit.Clock(o.since), what)
	if kind == noContact {
		line += "; nothing is lost: the nodes continue and keep what they measure"
	}
	o.say(line + "; this command continues when it answers again")
}

// Silent notes that nothing of an answer has arrived since a time, and that the
// orchestrator does not say either that it works on it: text is its reason, empty where it
// says nothing at all.
func (o *Outage) Silent(since time.Time, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kind, what := silent, "the orchestrator at "+o.base+" does not answer; nothing is lost: the nodes continue and keep what they measure"
	if text != "" {
		kind, what = cannotAnswer, text
	}
	began, now := o.since.IsZero(), o.now()
	if began {
		o.since = since
	} else if kind == o.kind && now.Sub(o.told) < sayAgain {
		return
	}
	o.kind, o.told = kind, now
	o.say(fmt.Sprintf("since %s: %s; this command waits for its answer", unit.Clock(o.since), what))
}

// Over notes that a call succeeded.
func (o *Outage) Over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return
	}
	o.say(fmt.Sprintf("the orchestrator is back after %.0f s; nothing was lost", max(1, o.now().Sub(o.since).Seconds())))
	o.since = time.Time{}
}

// Final reports whether the orchestrator would answer the same if it were asked again.
func Final(err error) bool {
	var un *untrustedError
	if errors.As(err, &un) {
		return true
	}
	switch connect.CodeOf(err) {
	case connect.CodeNotFound, connect.CodeInvalidArgument, connect.CodeUnimplemented, connect.CodePermissionDenied, connect.CodeUnauthenticated:
		return true
	}
	return false
}

type waitKey struct{}

// Waiting returns a context whose unary calls, and what [Repeat] is given, wait while the orchestrator or its
// database is away, until the context ends, and say so on the outage. It is for calls
// that may be made twice.
func Waiting(ctx context.Context, o *Outage) context.Context {
	return context.WithValue(ctx, waitKey{}, o)
}

// Retry spaces out how often a command that waits asks the orchestrator again.
func Retry() backoff.Backoff { return backoff.Backoff{Min: askAgain, Max: askAgainMax} }

// Repeat calls f, and in a [Waiting] context again for as long as the orchestrator or its
// database is away.
func Repeat(ctx context.Context, f func() error) error {
	o, _ := ctx.Value(waitKey{}).(*Outage)
	retry := Retry()
	for {
		err := f()
		if o == nil || ctx.Err() != nil {
			return err
		}
		away := connect.CodeOf(err) == connect.CodeUnavailable || err != nil && !connect.IsWireError(err) && !Final(err)
		if !away {
			if err == nil {
				o.Over()
			}
			return err
		}
		o.Failed(err)
		if !retry.Wait(ctx) {
			return err
		}
	}
}

// waiting repeats the calls of a [Waiting] context.
func waiting(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (res connect.AnyResponse, err error) {
		err = Repeat(ctx, func() error {
			res, err = next(ctx, req)
			return err
		})
		return res, err
	}
}

// Options are those of every client of the command line.
func Options() connect.ClientOption {
	return connect.WithClientOptions(connect.WithGRPC(), connect.WithInterceptors(connect.UnaryInterceptorFunc(waiting)))
}
