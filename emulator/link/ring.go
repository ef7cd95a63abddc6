package link

// ring is a first-in, first-out queue that grows and never shrinks, so that a
// network in steady state allocates nothing.
type ring struct {
	buf  []packet // length is a power of two
	head int
	n    int
}

func (r *ring) push(p packet) {
	if r.n == len(r.buf) {
		grown := make([]packet, max(16, 2*len(r.buf)))
		for i := range r.n {
			grown[i] = r.buf[(r.head+i)&(len(r.buf)-1)]
		}
		r.buf, r.head = grown, 0
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = p
	r.n++
}

// front is the oldest packet; there must be one. Valid until the next push or pop.
func (r *ring) front() *packet { return &r.buf[r.head] }

func (r *ring) pop() {
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
}
