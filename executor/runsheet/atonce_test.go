package runsheet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMostAtOnce(t *testing.T) {
	f := func(start, duration time.Duration) Flow { return Flow{Start: start, Duration: duration} }
	for name, c := range map[string]struct {
		flows []Flow
		want  int
	}{
		"none":                      {nil, 0},
		"one":                       {[]Flow{f(0, 0)}, 1},
		"one after the other":       {[]Flow{f(0, 5), f(6, 5)}, 1},
		"an end at another's start": {[]Flow{f(0, 5), f(5, 5)}, 2},
		"without an end":            {[]Flow{f(0, 0), f(9, 1), f(20, 1)}, 2},
		"four":                      {[]Flow{f(4, 10), f(0, 10), f(8, 1), f(9, 9)}, 4},
	} {
		s := &Sheet{Trials: []Trial{{}, {Flows: c.flows}}}
		require.Equal(t, c.want, s.MostAtOnce(), name)
	}
}
