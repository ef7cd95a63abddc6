package nodes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConnected(t *testing.T) {
	contact := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		node  node
		after time.Duration
		want  bool
	}{
		"contact just now":           {node{}, time.Second, true},
		"no contact for 4 s":         {node{}, 4 * time.Second, false},
		"polls":                      {node{polls: 1}, time.Hour, true},
		"disconnected":               {node{disconnected: true}, time.Second, false},
		"virtual, on a busy machine": {node{Registration: Registration{Virtual: true}}, 30 * time.Second, true},
		"virtual, long ago":          {node{Registration: Registration{Virtual: true}}, 2 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.node.contact = contact
			require.Equal(t, c.want, c.node.connected(contact.Add(c.after)))
		})
	}
}
