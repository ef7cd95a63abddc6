package code

import (
	"cmp"
	"slices"
)

// equation says that the sum of coefficients[i] times symbol first+i is data, where symbols
// are length || data || zeros. First and last coefficient are not 0 while it is in a system.
type equation struct {
	first        ID
	coefficients []byte
	data         []byte
	size         int // bytes of memory
}

// equationOverhead is about what an equation takes beyond coefficients and data.
const equationOverhead = 128

func newEquation(first ID, count int, data []byte) *equation {
	e := &equation{first: first, coefficients: make([]byte, count), data: slices.Clone(data)}
	e.size = equationSize(count, len(data))
	return e
}

func equationSize(count, data int) int { return equationOverhead + count + data }

func (e *equation) last() ID { return e.first + uint64(len(e.coefficients)) - 1 }

// at returns the coefficient of symbol id, which may lie outside of the equation.
func (e *equation) at(id ID) byte {
	if id < e.first || id-e.first >= uint64(len(e.coefficients)) {
		return 0
	}
	return e.coefficients[id-e.first]
}

// trim removes zeros at both ends and reports whether anything is left.
func (e *equation) trim() bool {
	for len(e.coefficients) > 0 && e.coefficients[0] == 0 {
		e.first++
		e.coefficients = e.coefficients[1:]
	}
	for n := len(e.coefficients); n > 0 && e.coefficients[n-1] == 0; n-- {
		e.coefficients = e.coefficients[:n-1]
	}
	return len(e.coefficients) > 0
}

// eliminate subtracts the multiple of other that leaves e without symbol id. The range of
// other lies within that of e.
func (e *equation) eliminate(id ID, other *equation) {
	factor := divide(e.at(id), other.at(id))
	addMultiple(e.coefficients[other.first-e.first:], factor, other.coefficients)
	if grow := len(other.data) - len(e.data); grow > 0 {
		longer := make([]byte, len(other.data))
		copy(longer, e.data)
		e.data = longer
		e.size += grow
	}
	addMultiple(e.data, factor, other.data)
}

// widen makes the range of e include first..last.
func (e *equation) widen(first, last ID) {
	first, last = min(first, e.first), max(last, e.last())
	wide := make([]byte, last-first+1)
	copy(wide[e.first-first:], e.coefficients)
	e.size += max(0, len(wide)-len(e.coefficients))
	e.first, e.coefficients = first, wide
}

// system holds independent equations in minimal span form: no two begin with the same symbol
// and no two end with the same. Of all forms it has two properties that the decoder needs:
//   - Whatever symbol follows from the equations is the only one of an equation (the range
//     of a sum of equations is never smaller than the ranges of its summands).
//   - The longer range is always reduced by the shorter that lies within, so no range grows
//     beyond MaxWindow, and a new equation costs at most as many steps as it has symbols, on
//     average.
type system struct {
	equations []*equation // in ascending order of their first symbols
	byLast    map[ID]*equation
	bytes     int
	damaged   int // equations that contradict others
}

func newSystem() system { return system{byLast: make(map[ID]*equation)} }

// position returns the index of the first equation that begins at id or later.
func (s *system) position(id ID) int {
	i, _ := slices.BinarySearchFunc(s.equations, id, func(e *equation, id ID) int { return cmp.Compare(e.first, id) })
	return i
}

func (s *system) beginningAt(id ID) *equation {
	if i := s.position(id); i < len(s.equations) && s.equations[i].first == id {
		return s.equations[i]
	}
	return nil
}

func (s *system) put(e *equation) {
	s.equations = slices.Insert(s.equations, s.position(e.first), e)
	s.byLast[e.last()] = e
	s.bytes += e.size
}

func (s *system) remove(e *equation) {
	i := s.position(e.first)
	s.equations = slices.Delete(s.equations, i, i+1)
	delete(s.byLast, e.last())
	s.bytes -= e.size
}

// dropBelow removes the equations whose ranges begin below id. Nothing about other symbols
// is lost: no sum of these equations is without symbols below id.
func (s *system) dropBelow(id ID) {
	for len(s.equations) > 0 && s.equations[0].first < id {
		s.remove(s.equations[0])
	}
}

// insert adds equations, which are not in the system, and returns how many of them the
// others did not imply, and the equations that have one symbol only, which stay in the
// system.
func (s *system) insert(work ...*equation) (independent int, single []*equation) {
	independent = len(work)
	for len(work) > 0 {
		e := work[len(work)-1]
		if !e.trim() {
			work = work[:len(work)-1]
			independent--
			if slices.ContainsFunc(e.data, func(b byte) bool { return b != 0 }) {
				s.damaged++
			}
			continue
		}
		other, at := s.beginningAt(e.first), e.first
		if other == nil {
			other, at = s.byLast[e.last()], e.last()
		}
		switch {
		case other == nil:
			work = work[:len(work)-1]
			s.put(e)
			if len(e.coefficients) == 1 {
				single = append(single, e)
			}
		case len(other.coefficients) <= len(e.coefficients):
			e.eliminate(at, other)
		default:
			s.remove(other)
			other.eliminate(at, e)
			work = append(work[:len(work)-1], other, e)
		}
	}
	return independent, single
}

// having returns the equations with symbol id.
func (s *system) having(id ID) []*equation {
	var found []*equation
	from := s.position(id - min(id, MaxWindow-1))
	for _, e := range s.equations[from:] {
		if e.first > id {
			break
		}
		if e.at(id) != 0 {
			found = append(found, e)
		}
	}
	return found
}

// substitute subtracts symbol id, which became known (length || data), from all equations.
// It returns the equations that have one symbol only since.
func (s *system) substitute(id ID, value []byte) []*equation {
	var changed []*equation
	for _, e := range s.having(id) {
		inside := e.first != id && e.last() != id
		if !inside || len(e.data) < len(value) {
			s.remove(e)
		}
		if len(e.data) < len(value) { // An honest equation is as long as its longest symbol.
			s.damaged++
			continue
		}
		addMultiple(e.data, e.at(id), value)
		e.coefficients[id-e.first] = 0
		if !inside {
			changed = append(changed, e)
		}
	}
	_, single := s.insert(changed...)
	return single
}

// abandon removes symbol id from the system: one equation is lost, and with it the symbol is
// eliminated from the others; of these, the ones that would need a range of more than
// MaxWindow are lost as well. No symbol follows from what remains that did not before.
func (s *system) abandon(id ID) {
	with := s.having(id)
	if len(with) == 0 {
		return
	}
	lost := slices.MinFunc(with, func(a, b *equation) int { return cmp.Compare(len(a.coefficients), len(b.coefficients)) })
	var changed []*equation
	for _, e := range with {
		s.remove(e)
		first, last := min(e.first, lost.first), max(e.last(), lost.last())
		if e == lost || last-first >= MaxWindow {
			continue
		}
		e.widen(first, last)
		e.eliminate(id, lost)
		changed = append(changed, e)
	}
	s.insert(changed...)
}
