package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"linktrial/internal/backoff"
)

// Share is what a second orchestrator has in common with the first one.
type Share string

// What two orchestrators can have in common.
const (
	SameFolder   Share = "data folder"
	SameDatabase Share = "database" // by its URL, with a data folder of its own
)

// refusalLimit is how long a second orchestrator may take until it ends: it waits a few
// seconds for the claim of one that was just killed, and a busy machine takes its time.
const refusalLimit = time.Minute

// duplicate runs a second agent of a node's name.
func (l *Lab) duplicate(i Injection) (Injected, error) {
	cmd, err := l.Second(i.Node)
	if err != nil {
		return Injected{}, err
	}
	return Injected{Touches: l.touches(i), Detail: fmt.Sprintf("process %d", cmd.Process.Pid), End: func() error {
		cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, or had ended before
		return nil
	}}, nil
}

// duplicateOrchestrator starts a second orchestrator on the data folder of the first
// one, and then one on its database. Both must be refused, in a sentence that names the
// first one.
func (l *Lab) duplicateOrchestrator(ctx context.Context, i Injection) (Injected, error) {
	first, _, err := l.await(ctx, i)
	if err != nil {
		return Injected{}, err
	}
	// One that is just being started has nothing yet that it could keep another out of.
	for deadline := time.Now().Add(appearLimit); !l.Answers(ctx); {
		if time.Now().After(deadline) {
			return Injected{}, fmt.Errorf("the first orchestrator does not answer within %s", appearLimit)
		}
		if !backoff.Sleep(ctx, 20*time.Millisecond) {
			return Injected{}, ctx.Err()
		}
	}
	out := Injected{Touches: l.touches(i), Working: func(ctx context.Context) bool { return first.Alive() && l.Answers(ctx) }}
	var details []string
	for _, share := range []Share{SameFolder, SameDatabase} {
		limited, cancel := context.WithTimeout(ctx, refusalLimit)
		said, ended, err := l.SecondOrchestrator(limited, share)
		cancel()
		if err != nil {
			return out, fmt.Errorf("second orchestrator on the same %s: %w", share, err)
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		details = append(details, fmt.Sprintf("on the same %s: %s", share, said))
		out.Wrong = errors.Join(out.Wrong, notRefused(share, first.PID, said, ended))
	}
	out.Detail = strings.Join(details, "; ")
	return out, nil
}

// notRefused returns an error where a second orchestrator was not refused in a sentence
// that says who has what it wanted.
func notRefused(share Share, first int, said string, ended bool) error {
	switch {
	case !ended:
		return fmt.Errorf("a second orchestrator on the same %s was not refused within %s: %s", share, refusalLimit, said)
	case !strings.Contains(said, "is in use by another") || !strings.Contains(said, fmt.Sprintf("process %d", first)):
		return fmt.Errorf("a second orchestrator on the same %s ended without saying that process %d has it: %s", share, first, said)
	}
	return nil
}
