package driver

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/protocols/contract"
)

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }
func (systemClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"event":"ready","info":{"implementation":"x"}}` + "\n"))
	f.Add([]byte("nonsense\n"))
	f.Add([]byte(strings.Repeat("y", contract.MaxLine+3)))
	f.Add([]byte(`{"event":"connected","transfer":"00000000000000000000000000000000"}` + "\n{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		faults := 0
		for l := range Lines(io.NopCloser(bytes.NewReader(b)), systemClock{}) {
			if faults > 0 {
				t.Fatal("something was read after a fault")
			}
			if l.Event == nil {
				faults++
				if l.Reason != journal.ReasonGarbage && l.Reason != journal.ReasonFlood || l.Message == "" {
					t.Fatalf("fault %+v", l)
				}
			}
		}
	})
}
