package nodes

import (
	"context"
	"fmt"
	"time"
)

// maxPoll bounds a poll whatever the agent asks for, so that a node that lost
// its power is noticed.
const maxPoll = 30 * time.Second

// pollInRun is how long a poll of a node that is to be in contact waits at most: its
// next poll shows that the agent's program still works. With in-band control nodes are
// not to be in contact, and their polls stay as rare as they are.
const pollInRun = 3 * time.Second

// Poll waits until what the node is to do differs from revision, for at most
// wait, and returns all of it. It returns early when ctx ends or the registry
// is stopping, and when another start of the agent registers.
func (r *Registry) Poll(ctx context.Context, name, incarnation string, revision, diskFreeBytes int64, wait time.Duration) (int64, []Assignment, error) {
	n, err := r.beginPoll(name, incarnation, diskFreeBytes)
	if err != nil {
		return 0, nil, err
	}
	defer r.endPoll(ctx, n)
	timeout := time.NewTimer(max(0, min(wait, r.longestPoll(name))))
	defer timeout.Stop()
	for {
		changed := r.AssignmentsChanged(name)
		if !r.isCurrent(name, n) {
			return 0, nil, fmt.Errorf("%s: %w", name, ErrUnknownNode)
		}
		a := r.board.of(name)
		if a.revision != revision {
			return a.revision, a.list, nil
		}
		select {
		case <-changed:
		case <-timeout.C:
			return a.revision, a.list, nil
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-r.cfg.Stopping:
			return 0, nil, ErrStopping
		}
	}
}

func (r *Registry) longestPoll(name string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched[name] {
		return pollInRun
	}
	return maxPoll
}

// Connection is the connection over which a node polls. It can be asked at any later time.
type Connection interface {
	// DataReceived returns for how long no data has arrived; false: that is not known.
	DataReceived() (time.Duration, bool)
	// Open reports whether the node can still be reached over it, as far as is known.
	Open() bool
}

// SetConnection tells over which connection a node polls.
func (r *Registry) SetConnection(name, incarnation string, c Connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.nodes[name]; n != nil && n.Incarnation == incarnation {
		n.connection = c
	}
}

// AssignmentsChanged returns a channel that is closed when the node is to do
// something else than before, and when its agent registers.
func (r *Registry) AssignmentsChanged(node string) <-chan struct{} { return r.board.changedOf(node) }

func (r *Registry) beginPoll(name, incarnation string, diskFreeBytes int64) (*node, error) {
	r.mu.Lock()
	n := r.nodes[name]
	if n == nil || n.Incarnation != incarnation {
		r.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", name, ErrUnknownNode)
	}
	now := r.cfg.Now()
	returned := !n.connected(now) || n.cut
	n.polls++
	n.contact, n.disconnected, n.cut = now, false, false
	if diskFreeBytes > 0 {
		n.DiskFreeBytes = diskFreeBytes
	}
	r.mu.Unlock()
	if returned {
		r.cfg.ReviewRuns()
	}
	return n, nil
}

func (r *Registry) endPoll(ctx context.Context, n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n.polls--
	n.polled = r.cfg.Now()
	// An agent ends its poll by itself, too, where it has something to tell: its next poll
	// comes over the same connection.
	n.cut = ctx.Err() != nil
	n.disconnected = n.cut && (n.connection == nil || !n.connection.Open())
	if n.cut {
		r.cfg.ReviewRuns()
	}
}

// isCurrent reports whether no other start of the agent has registered since.
func (r *Registry) isCurrent(name string, n *node) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[name] == n
}
