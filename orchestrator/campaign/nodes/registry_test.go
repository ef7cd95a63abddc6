package nodes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/campaign/nodes/nodesdb"
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

// Of a program that is stopped while its kernel answers, the last call is the last
// contact, however long its poll still waits; an orchestrator that itself was stopped
// does not hold that against the nodes.
func TestMissing(t *testing.T) {
	began := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	now := began
	r := New(Config{Now: func() time.Time { return now }, ReviewRuns: func() {}})
	r.nodes["relay"] = &node{Registration: Registration{Name: "relay", Incarnation: "1"}, contact: now}
	r.Assign(Work{Active: map[string][]string{"r-1": {"relay"}}})
	tick := func(d time.Duration) []MissingNode {
		var out []MissingNode
		for range d / time.Second {
			now = now.Add(time.Second)
			out = r.Missing("r-1")
		}
		return out
	}
	require.Empty(t, tick(5*time.Second))
	n, err := r.beginPoll("relay", "1", 0)
	require.NoError(t, err)
	require.Equal(t, pollInRun, r.longestPoll("relay"))
	require.Equal(t, maxPoll, r.longestPoll("client"))
	contact := now
	require.Empty(t, tick(noContactAfter-time.Second))
	require.Equal(t, []MissingNode{{"relay", contact}}, tick(time.Second))
	r.endPoll(t.Context(), n)
	require.Equal(t, []MissingNode{{"relay", contact}}, tick(time.Second), "that a poll ended is no sign of the node")

	// Data of a call that takes long to arrive.
	r.SetConnection("relay", "1", connection{quiet: time.Second, known: true})
	require.Empty(t, tick(time.Second))
	r.SetConnection("relay", "1", connection{})
	require.Equal(t, []MissingNode{{"relay", contact}}, tick(time.Second))

	n, err = r.beginPoll("relay", "1", 0)
	require.NoError(t, err)
	r.endPoll(t.Context(), n)
	now = now.Add(time.Minute)
	require.Empty(t, r.Missing("r-1"), "this program did not run for a minute")
	require.Empty(t, tick(noContactAfter-time.Second))
	require.Len(t, tick(time.Second), 1)
	r.nodes["relay"].Virtual = true
	require.Empty(t, tick(time.Second), "it delivers when all guests have ended")
}

// connection is one of which everything is known.
type connection struct {
	quiet       time.Duration
	known, open bool
}

func (c connection) DataReceived() (time.Duration, bool) { return c.quiet, c.known }
func (c connection) Open() bool                          { return c.open }

// An agent that ends its poll to tell something stays connected; one whose connection has
// ended with its poll does not.
func TestPollEnded(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		connection Connection
		ctx        context.Context
		want       bool
	}{
		"answered":                        {nil, t.Context(), true},
		"cut, its connection unknown":     {nil, ended, false},
		"cut, its connection closed":      {connection{open: false}, ended, false},
		"cut, its connection still there": {connection{open: true}, ended, true},
	} {
		t.Run(name, func(t *testing.T) {
			reviews := 0
			r := New(Config{Now: time.Now, ReviewRuns: func() { reviews++ }})
			r.nodes["relay"] = &node{Registration: Registration{Name: "relay", Incarnation: "1"}}
			if c.connection != nil {
				r.SetConnection("relay", "1", c.connection)
			}
			n, err := r.beginPoll("relay", "1", 0)
			require.NoError(t, err)
			r.endPoll(c.ctx, n)
			require.Equal(t, c.want, r.List()[0].Connected)
			reviewed := 1 // when it connected
			if c.ctx == ended {
				reviewed++
				require.NoError(t, r.checkReplaced(&Registration{Name: "relay", Incarnation: "2"}, time.Now()), "its agent may have ended")
			} else {
				require.ErrorIs(t, r.checkReplaced(&Registration{Name: "relay", Incarnation: "2"}, time.Now()), ErrNameTaken)
			}
			require.Equal(t, reviewed, reviews)
			_, err = r.beginPoll("relay", "1", 0)
			require.NoError(t, err)
			if c.ctx == ended { // what it has to tell comes with this one
				reviewed++
			}
			require.Equal(t, reviewed, reviews)
		})
	}
}

// A time without contact is stored when it begins and when it is over, and so is a new
// start of an agent that came too soon for anybody to miss it.
func TestLossesAreNoted(t *testing.T) {
	now := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	r := New(Config{Now: func() time.Time { return now }})
	add := func(incarnation string) {
		n := &node{Registration: Registration{Name: "relay", Incarnation: incarnation}, contact: now}
		if old := r.nodes["relay"]; old != nil {
			r.restartedLocked(old, now)
			n.lost = old.lost
		}
		r.nodes["relay"] = n
	}
	add("1")
	r.Assign(Work{RunOf: map[string]string{"relay": "r-1"}, Active: map[string][]string{"r-1": {"relay"}}})
	tick := func(n int) {
		for range n {
			now = now.Add(time.Second)
			r.lookLocked(now)
			r.reviewContactsLocked(now)
		}
	}
	began := now
	tick(20)
	require.Equal(t, []nodesdb.PutContactLossParams{{RunID: "r-1", Node: "relay", LostAt: began}}, r.losses, "once")
	add("2")
	back := now
	tick(1)
	require.Equal(t, nodesdb.PutContactLossParams{RunID: "r-1", Node: "relay", LostAt: began, BackAt: &back, Restarted: true}, r.losses[1])

	tick(1)
	add("3")
	again := now
	tick(1)
	require.Equal(t, nodesdb.PutContactLossParams{RunID: "r-1", Node: "relay", LostAt: back, BackAt: &again, Restarted: true}, r.losses[2])
	require.Len(t, r.losses, 3)
}

// A node whose power failed comes back before its last contact is old, and delivers its
// journal while it is not registered yet: that must not keep it from registering.
func TestDeliveriesOfAnotherStart(t *testing.T) {
	now := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	r := New(Config{Now: func() time.Time { return now }, ReviewRuns: func() {}})
	r.nodes["server"] = &node{Registration: Registration{Name: "server", Role: "server", Incarnation: "1"}, contact: now, delivered: map[string]string{}}
	next := &Registration{Name: "server", Role: "server", Incarnation: "2"}
	for range 4 {
		require.ErrorIs(t, r.checkReplaced(next, now), ErrNameTaken)
		now = now.Add(pollGap / 4)
		r.Delivered("server", "2", "r-1")
	}
	require.NoError(t, r.checkReplaced(next, now))
	require.False(t, r.HasDelivered("server", "r-1"), "the registered start did not")
	for _, incarnation := range []string{"", "1"} {
		now = now.Add(pollGap)
		r.Delivered("server", incarnation, "r-1")
		require.ErrorIs(t, r.checkReplaced(next, now), ErrNameTaken)
	}
	require.True(t, r.HasDelivered("server", "r-1"))
}

// The nodes of a rehearsal in virtual time that has ended do not hold up the next one.
func TestVirtualNodesAreReplaced(t *testing.T) {
	now := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	r := New(Config{})
	r.nodes["virtual-client"] = &node{Registration: Registration{Name: "virtual-client", Role: "client", Incarnation: "1", Virtual: true}, contact: now}
	next := &Registration{Name: "virtual-client", Role: "client", Incarnation: "2", Virtual: true}
	require.NoError(t, r.checkReplaced(next, now))
	r.Assign(Work{RunOf: map[string]string{"virtual-client": "r-1"}})
	require.ErrorIs(t, r.checkReplaced(next, now), ErrNameTaken, "its run goes on")
}

// A state folder is known by the first part of an incarnation, which older agents do not tell.
func TestOtherFolder(t *testing.T) {
	for _, c := range []struct {
		before, now string
		other       bool
	}{
		{"A/1", "A/2", false}, {"A/1", "B/1", true}, {"1", "B/1", false}, {"A/1", "2", false}, {"", "B/1", false},
	} {
		require.Equal(t, c.other, otherFolder(c.before, c.now), c)
	}
}
