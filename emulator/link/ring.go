package link

// ring is a first-in, first-out queue that grows and never shrinks, so that a
// network in steady state allocates nothing. Its elements have numbers that
// count up from 0 over its whole life.
type ring[T any] struct {
	buf  []T // length is a power of two
	head int
	n    int
	base uint64 // number of the oldest element
}

func (r *ring[T]) push(p T) {
	if r.n == len(r.buf) {
		grown := make([]T, max(16, 2*len(r.buf)))
		for i := range r.n {
			grown[i] = r.buf[(r.head+i)&(len(r.buf)-1)]
		}
		r.buf, r.head = grown, 0
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = p
	r.n++
}

// front is the oldest element; there must be one. Valid until the next push or pop.
func (r *ring[T]) front() *T { return &r.buf[r.head] }

func (r *ring[T]) pop() {
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	r.base++
}

// end is the number that the next element gets.
func (r *ring[T]) end() uint64 { return r.base + uint64(r.n) }

// at is the element of a number, or nil where it has been removed.
func (r *ring[T]) at(number uint64) *T {
	if number < r.base || number >= r.end() {
		return nil
	}
	return &r.buf[(r.head+int(number-r.base))&(len(r.buf)-1)]
}
