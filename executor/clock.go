package executor

import (
	"time"

	"linktrial/internal/backoff"
)

// Clock tells the time and waits; nil in [Config] is the system's.
type Clock interface {
	Now() time.Time
	// Timer sends once after d; stop releases it.
	Timer(d time.Duration) (fired <-chan time.Time, stop func())
}

type systemClock struct{ backoff.System }

func (systemClock) Now() time.Time { return time.Now() }
