// Package quota names what one node may take of the orchestrator, so that every refusal for
// such a bound can be counted in one place, whichever package refuses.
//
// In: an error, and the bound that it is about. Out: which bound an error is about. It
// imports nothing of the project.
package quota

import "errors"

// Bound is one of the bounds of a node.
type Bound string

// The bounds. Their names are values of a label of linktrial_over_bound_total, on which
// people's alerts depend.
const (
	Journal      Bound = "journal"      // bytes of one journal
	Late         Bound = "late"         // bytes after the end of a journal
	Certificates Bound = "certificates" // certificates within a day
	Drivers      Bound = "drivers"      // drivers in a registration
)

// Bounds lists all of them.
var Bounds = []Bound{Journal, Late, Certificates, Drivers}

type exceeded struct {
	error
	bound Bound
}

func (e *exceeded) Unwrap() error { return e.error }

// Exceeded returns err, which reports that a node wants more than the bound allows.
func Exceeded(b Bound, err error) error { return &exceeded{err, b} }

// Of returns the bound that an error is about, and whether it is about one.
func Of(err error) (Bound, bool) {
	var e *exceeded
	if errors.As(err, &e) {
		return e.bound, true
	}
	return "", false
}
