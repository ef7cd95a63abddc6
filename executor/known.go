package executor

import (
	"slices"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// pathPatience is how long no packet passes until a path is down: a shorter outage is a
// property of the channel, which every protocol bears. Where a connection may take less,
// so may the check; where an exchange took long before, it may again.
const (
	pathPatience = 10 * time.Second
	pathOthers   = 8 * time.Second // for all methods, where one does not pass or is refused
	pathSlower   = 4               // times of the slowest exchange so far
	// pathAgent is how long the first trial waits for a node's agent to answer, which may
	// just be starting; one of an older version never does.
	pathAgent = 30 * time.Second
)

// pathCheck is what the leading node knows of its paths.
type pathCheck struct {
	node *node

	mu    sync.Mutex
	known map[radio.Role]*pathKnown
}

// pathKnown is what is known of the path to one node.
type pathKnown struct {
	passed PathMethods   // at any time of the run
	last   time.Time     // when a packet passed last; zero: never in this start of the run
	took   time.Duration // by the slowest exchange
	asked  time.Time     // first; zero: never
	told   bool          // the node has said something of itself
	// suspect is set when something was not in order, until it is again.
	suspect bool
	blocked map[journal.ListenerName]blockedPort // when they were asked last
}

func newPathCheck(n *node) *pathCheck {
	return &pathCheck{node: n, known: map[radio.Role]*pathKnown{}}
}

func (c *pathCheck) of(role radio.Role) *pathKnown {
	k := c.known[role]
	if k == nil {
		k = &pathKnown{blocked: map[journal.ListenerName]blockedPort{}}
		c.known[role] = k
	}
	return k
}

// roles are the other nodes that a trial needs.
func (c *pathCheck) roles(trial *runsheet.Trial) []radio.Role {
	return slices.DeleteFunc(rolesOfTrial(c.node.sheet, trial), func(r radio.Role) bool { return r == c.node.Role })
}

// suspect has the path to a node asked again before the next attempt.
func (c *pathCheck) suspect(role radio.Role) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(role).suspect = true
}

func (c *pathCheck) patience(role radio.Role) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(min(c.node.sheet.Limits.Connect, pathPatience), pathSlower*c.of(role).took)
}

// networkTo is which packets a flow sends on its way to a node.
func (c *pathCheck) networkTo(f *flow, role radio.Role) string {
	t := c.node.sheet.Treatment(f.spec.Treatment)
	protocol := t.Protocol
	for _, v := range t.Passes(f.spec.ClientAt()) {
		if v.At == role {
			protocol = v.Protocol
		}
	}
	return c.node.networkOfProtocol(protocol)
}

// listener is what a node says of the listener that a flow needs there, of several the one
// that is not in order; nil: nothing.
func (c *pathCheck) listener(f *flow, role radio.Role, s *NodeState) (l *ListenerReport, what string) {
	for _, need := range c.node.sheet.Needs(&c.node.sheet.Trials[f.trial], role) {
		name := nameOf(&need)
		i := slices.IndexFunc(s.Listeners, func(l ListenerReport) bool { return l.name() == name })
		if i < 0 || need.Treatment.Name != f.spec.Treatment {
			continue
		}
		if l, what = &s.Listeners[i], describeListener(name, role); !l.Up || l.Outage != "" {
			break
		}
	}
	return l, what
}

// blockedPort is a listener's port that packets did not reach, or come back from.
type blockedPort struct {
	question PortQuestion
	verdict  portVerdict
	text     string
}
