package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// A node that works at its request for longer than one may be silent has shown that it has
// the request: it polled again. One whose cable was pulled has not.
func TestSilentIsWhoDoesNotFetch(t *testing.T) {
	for name, c := range map[string]struct {
		happens []string
		silent  bool
	}{
		"asks again":                {[]string{"answer", "poll"}, false},
		"waited for the answer":     {[]string{"answer"}, true},
		"polled before the request": {[]string{"poll", "answer"}, true},
		"was not reached":           {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &preflight{requests: map[string]*linktrialv1.PreflightRequest{"client": {Id: "p"}}, fetched: map[string]fetch{}}
			f := &Fleet{active: p}
			for _, what := range c.happens {
				if what == "poll" {
					f.Polls("client")
				} else {
					f.Requested("client")
				}
			}
			require.Equal(t, c.silent, p.silent("client", noSign))
			require.False(t, p.silent("client", noSign-1))
		})
	}
}
