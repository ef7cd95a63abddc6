package terminal

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitingNamesSlowSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		w := NewWaiting(&out)
		w.Step("starting the orchestrator")
		time.Sleep(1900 * time.Millisecond) // not worth a line
		w.Step("bringing up the lab")
		time.Sleep(13 * time.Second)
		w.Step("bringing up the lab") // still the same
		time.Sleep(2 * time.Second)
		w.Stop()
		const want = "bringing up the lab, for 2 s now\nbringing up the lab, for 12 s now\n"
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	})
}
