package core

// ring is a queue whose elements have consecutive numbers.
type ring[T any] struct {
	first uint64
	items []T
	head  int
}

func (r *ring[T]) end() uint64 { return r.first + uint64(len(r.items)-r.head) }

func (r *ring[T]) len() int { return len(r.items) - r.head }

// at returns element n, nil where the ring does not have it.
func (r *ring[T]) at(n uint64) *T {
	if n < r.first || n >= r.end() {
		return nil
	}
	return &r.items[r.head+int(n-r.first)]
}

func (r *ring[T]) push(v T) { r.items = append(r.items, v) }

func (r *ring[T]) pop() {
	var zero T
	r.items[r.head] = zero
	r.head++
	r.first++
	if r.head >= 64 && r.head*2 >= len(r.items) {
		n := copy(r.items, r.items[r.head:])
		clear(r.items[n:])
		r.items, r.head = r.items[:n], 0
	}
}
