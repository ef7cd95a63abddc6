package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

// A node names the listeners that were asked for and those at other ports than the sheet's.
func TestPortsAreThoseOfTheLastAnswer(t *testing.T) {
	a, b := journal.ListenerName{Treatment: "a"}, journal.ListenerName{Treatment: "b"}
	p := &farPorts{moved: map[radio.Role]map[journal.ListenerName]int{}}
	p.learn(radio.RoleServer, []ListenerReport{{Treatment: "a", Port: 5900, Up: true}, {Treatment: "b", Port: 5002, Up: true}})
	require.Equal(t, map[journal.ListenerName]int{a: 5900, b: 5002}, p.moved[radio.RoleServer])
	p.learn(radio.RoleServer, []ListenerReport{{Treatment: "a", Port: 5901}})
	require.Equal(t, map[journal.ListenerName]int{a: 5900}, p.moved[radio.RoleServer], "one that is not up is where it was")
	p.learn(radio.RoleServer, []ListenerReport{{Treatment: "b", Port: 5002, Up: true}})
	require.Equal(t, map[journal.ListenerName]int{b: 5002}, p.moved[radio.RoleServer])
}
