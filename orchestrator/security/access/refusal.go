package access

import (
	"fmt"
	"time"
)

// Reason is the kind of a refusal, for callers to branch on.
type Reason int

// Reasons of refusals.
const (
	Unauthenticated Reason = iota // it is not known who calls
	NotAllowed                    // who calls may not do this
	Invalid                       // the request cannot be understood
	NotFound
	Exists
	NotNow  // not in the state that things are in
	TooMany // attempts at passwords; see Refusal.RetryAfter
)

// Refusal says in one sentence, for people, why a call is refused. Nothing has
// changed where one is returned.
type Refusal struct {
	Reason     Reason
	RetryAfter time.Duration // zero: trying again does not help
	err        error
}

func (r *Refusal) Error() string { return r.err.Error() }
func (r *Refusal) Unwrap() error { return r.err }

func refuse(reason Reason, format string, args ...any) error {
	return &Refusal{Reason: reason, err: fmt.Errorf(format, args...)}
}
