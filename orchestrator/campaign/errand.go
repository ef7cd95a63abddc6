package campaign

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// SetErrand says that the orchestrator wants something else of a node, beside
// its runs: its poll is answered at once, and again after each change. What it
// is, those know who answer the poll; an empty id means nothing.
func (e *Engine) SetErrand(node, id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id == "" {
		delete(e.errands, node)
	} else {
		sum := sha256.Sum256([]byte(id))
		e.errands[node] = int64(binary.BigEndian.Uint64(sum[:]) & math.MaxInt64)
	}
	e.tellLocked()
}

// Knows says whether this start of the node's agent is registered.
func (e *Engine) Knows(node, incarnation string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.nodes[node]
	return n != nil && n.Incarnation == incarnation
}

// UnderWay is the runs that hold nodes now, sorted.
func (e *Engine) UnderWay() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Compact(slices.Sorted(maps.Values(e.taken)))
}
