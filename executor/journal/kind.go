package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"linktrial/internal/radio"
)

// Kind is all that is known of the records of one type, or of several with the same body:
// what the body is, who writes it, whether it can be true on its own, and its sentence for
// people. Storing, showing and auditing records, and the table in docs/data-format.md,
// follow from the list.
type Kind struct {
	Types   []Type
	Writers string // for documents: which nodes write it
	Holds   string // for documents: what its body has

	body  func() any
	check func(r *Record, body any) error
	text  func(t Type, body any) string
}

// kindOf makes a kind of records with the body B. check, if any, refuses a body that the
// store cannot hold, and one that only a node of another role can write; text, if any, is
// the sentence for people.
func kindOf[B any](types []Type, writers, holds string, check func(r *Record, b *B) error, text func(t Type, b *B) string) *Kind {
	k := &Kind{Types: types, Writers: writers, Holds: holds, body: func() any { return new(B) }}
	if check != nil {
		k.check = func(r *Record, body any) error { return check(r, body.(*B)) }
	}
	if text != nil {
		k.text = func(t Type, body any) string { return text(t, body.(*B)) }
	}
	return k
}

// kinds is every kind, in the order of documents.
var kinds = []*Kind{
	runKind, clockSteppedKind, provenanceKind, clockOffsetKind, listenerKind, attemptStartedKind, connectedKind, samplesKind, receivedKind, attemptEndedKind,
	trialEndedKind, lookKind, misbehaviourKind, commandKind, agentStoppedKind, interfaceKind, waitingKind, telemetryKind, telemetryFailedKind, controlKind, watchedKind, runEndedKind,
}

// Kinds is every kind, in the order of documents.
func Kinds() []*Kind { return slices.Clone(kinds) }

// KindOf is the kind of records of a type; nil: this version does not know it.
func KindOf(t Type) *Kind {
	i := slices.IndexFunc(kinds, func(k *Kind) bool { return slices.Contains(k.Types, t) })
	if i < 0 {
		return nil
	}
	return kinds[i]
}

// Open decodes and checks the body of a record, as far as that can be done without others.
// What it returns is a pointer to the body's struct.
func (r *Record) Open() (any, error) {
	k := KindOf(r.Type)
	switch {
	case k == nil:
		return nil, fmt.Errorf("unknown type %.100q", r.Type)
	case len(r.Body) == 0:
		return nil, fmt.Errorf("%s without a body", r.Type)
	}
	body := k.body()
	if err := json.Unmarshal(r.Body, body); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Type, err)
	}
	if k.check != nil {
		if err := k.check(r, body); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Type, err)
		}
	}
	return body, nil
}

// Text describes a record in one sentence for people. What a driver said in it may have
// several lines.
func Text(t Type, body json.RawMessage) string {
	k := KindOf(t)
	if k == nil || k.text == nil {
		return string(t)
	}
	b := k.body()
	if err := json.Unmarshal(body, b); err != nil { // it was refused when it came
		return "a record that cannot be read: " + err.Error()
	}
	return k.text(t, b)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Bounds of what a record may hold, far above what an agent writes and a plan makes.
const (
	MaxAttempts = 1 << 20   // the number of an attempt
	MaxText     = 256 << 10 // bytes of a text
	maxFlows    = 1 << 12
)

// Times of records: a clock that has lost its battery begins in 1970, and times beyond
// Latest cannot be shown by every program that reads an export.
var (
	Earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	Latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Storable is a text as the store can hold it: without the character U+0000 and bytes that
// are not UTF-8, each of which becomes U+FFFD.
func Storable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

// only refuses a record of a node of another role.
func (r *Record) only(role radio.Role) error {
	if r.Role != role {
		return fmt.Errorf("written by a %s, only a %s may write it", r.Role, role)
	}
	return nil
}

func attempt(trial, n, flow int) error {
	if trial < 0 || n < 1 || n > MaxAttempts || flow < 0 || flow > maxFlows {
		return fmt.Errorf("trial %d, attempt %d, flow %d", trial, n, flow)
	}
	return nil
}

func verdict(v Verdict) error {
	switch v {
	case Succeeded, Failed, TimedOut, Aborted, Invalid:
		return nil
	}
	return fmt.Errorf("verdict %q", v)
}
