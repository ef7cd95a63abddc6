package link

import (
	"container/heap"
	"time"
)

// queue are the packets on their way, by the time at which they are due and, of
// the same time, in the order in which they were added.
type queue struct {
	waiting deliveries
	added   int64
}

func (q *queue) add(packet []byte, due time.Time) {
	q.added++
	heap.Push(&q.waiting, delivery{due, q.added, packet})
}

// next is when the next packet is due; zero: none is on its way.
func (q *queue) next() time.Time {
	if len(q.waiting) == 0 {
		return time.Time{}
	}
	return q.waiting[0].due
}

// take removes the next packet.
func (q *queue) take() []byte { return heap.Pop(&q.waiting).(delivery).packet }

// delivery is a packet on its way.
type delivery struct {
	due    time.Time
	order  int64
	packet []byte
}

// deliveries is the heap of a queue.
type deliveries []delivery

func (q deliveries) Len() int { return len(q) }
func (q deliveries) Less(i, j int) bool {
	if q[i].due.Equal(q[j].due) {
		return q[i].order < q[j].order
	}
	return q[i].due.Before(q[j].due)
}
func (q deliveries) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *deliveries) Push(x any)   { *q = append(*q, x.(delivery)) }
func (q *deliveries) Pop() any {
	old := *q
	x := old[len(old)-1]
	old[len(old)-1] = delivery{}
	*q = old[:len(old)-1]
	return x
}
