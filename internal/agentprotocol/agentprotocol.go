// Package agentprotocol is the number of the calls between agents and
// orchestrator, by which two versions of Linktrial know whether they go
// together. Comes in: the other side's number. Goes out: whether it is spoken
// here. Imports nothing of the project.
package agentprotocol

import "fmt"

// Number is the protocol that this version speaks. It is raised when a call
// changes so that a side that does not know of the change would do something
// wrong; what a side may pass over does not raise it.
const Number = 1

// Oldest is the oldest protocol that this version still understands.
const Oldest = 1

// Spoken says whether the other side's protocol is understood here. A side from
// before the number was told says 0 and speaks 1.
func Spoken(theirs int32) bool {
	n := max(theirs, 1)
	return n >= Oldest && n <= Number
}

// Words is the protocols of this version, for people: "protocol 1".
func Words() string {
	if Oldest == Number {
		return fmt.Sprintf("protocol %d", Number)
	}
	return fmt.Sprintf("protocols %d to %d", Oldest, Number)
}
