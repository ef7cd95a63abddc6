package trial

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a preflight does is said while it does it, wherever its output goes.
func TestPreflightSteps(t *testing.T) {
	for name, tt := range map[string]struct {
		terminal bool
		want     string
	}{
		"terminal": {true, "\r\033[Kself (waiting for a, b), about 4s left\r\033[Kself (waiting for b), about 3s left\r\033[Kpairs, about 1s left\r\033[K"},
		"file":     {false, "self, about 4s left\npairs, about 1s left\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			say := stepsOn(&b, tt.terminal)
			say("self (waiting for a, b)", 4*time.Second)
			say("self (waiting for b)", 3*time.Second)
			say("pairs", time.Second)
			say("", 0)
			require.Equal(t, tt.want, b.String())
		})
	}
}
