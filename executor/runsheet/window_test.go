package runsheet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWindowLength(t *testing.T) {
	const s = time.Second
	flow := func(start, duration time.Duration) Flow {
		return Flow{Start: start, Duration: duration}
	}
	for name, c := range map[string]struct {
		flows []Flow
		want  time.Duration
	}{
		"none":           {nil, 0},
		"one":            {[]Flow{flow(0, 10*s)}, 0},
		"two":            {[]Flow{flow(0, 10*s), flow(0, 10*s)}, 10 * s},
		"one has a size": {[]Flow{flow(0, 10*s), flow(0, 0)}, 0},
		"apart":          {[]Flow{flow(5*s, 10*s), flow(20*s, 10*s)}, 25 * s},
		"not in order":   {[]Flow{flow(20*s, 10*s), flow(5*s, 30*s)}, 30 * s},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, WindowLength(c.flows)) })
	}
}
