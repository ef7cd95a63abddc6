// Package agentprotocol is the version number of the calls between agents and
// orchestrator: it decides which versions of Linktrial work together. Comes in: the
// other side's number. Goes out: whether this version understands it.
package agentprotocol

import "fmt"

// Number is the protocol that this version speaks. It is raised when a call
// changes so that a side that does not know of the change would do something
// wrong; a change that a side may ignore does not raise it. Since 2 all that an
// orchestrator sends a node to do is signed.
const Number = 2

// Oldest is the oldest protocol that this version still understands: what 1 sends is
// not signed.
const Oldest = 2

// span is the protocols of one version.
type span struct{ oldest, newest int32 }

var here = span{Oldest, Number}

// Spoken reports whether this version understands the other side's protocol. A side
// that does not send a number counts as 0 and speaks 1.
func Spoken(theirs int32) bool { return here.spoken(theirs) }

// Agreed is the protocol that the orchestrator answers a registration with: an
// agent of an older protocol that is still understood here knows no newer one,
// and would refuse it.
func Agreed(theirs int32) int32 { return here.agreed(theirs) }

// Words is the protocols of this version, for people: "protocol 1".
func Words() string { return here.words() }

func (s span) spoken(theirs int32) bool {
	n := max(theirs, 1)
	return n >= s.oldest && n <= s.newest
}

func (s span) agreed(theirs int32) int32 { return min(max(theirs, 1), s.newest) }

func (s span) words() string {
	if s.oldest == s.newest {
		return fmt.Sprintf("protocol %d", s.newest)
	}
	return fmt.Sprintf("protocols %d to %d", s.oldest, s.newest)
}
