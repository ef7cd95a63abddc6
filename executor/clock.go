package executor

import "time"

// Clock tells the time and waits; nil in [Config] is the system's.
type Clock interface {
	Now() time.Time
	// Timer sends once after d; stop releases it.
	Timer(d time.Duration) (fired <-chan time.Time, stop func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }
func (systemClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
