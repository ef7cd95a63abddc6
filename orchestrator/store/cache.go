package store

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
)

// costCache holds values that nobody may change, by a key that names one state
// of them. The least recently used make room where together they cost too much.
type costCache[V any] struct {
	mu   sync.Mutex
	lru  *simplelru.LRU[string, V]
	cost func(V) int
	sum  int
	most int
}

func newCostCache[V any](most int, cost func(V) int) *costCache[V] {
	c := &costCache[V]{cost: cost, most: most}
	lru, err := simplelru.NewLRU(most, func(_ string, v V) { c.sum -= cost(v) })
	if err != nil {
		panic(err) // a size that is not positive
	}
	c.lru = lru
	return c
}

func (c *costCache[V]) get(key string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Get(key)
}

func (c *costCache[V]) add(key string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lru.Contains(key) {
		return
	}
	c.lru.Add(key, v)
	for c.sum += c.cost(v); c.sum > c.most; {
		if _, _, ok := c.lru.RemoveOldest(); !ok {
			return
		}
	}
}

// maxCachedTrials bounds the sheets, and the runs, that are kept in memory; a
// trial takes half a kilobyte of each, and what does not grow with the trials
// counts as some.
const (
	maxCachedTrials = 100_000
	otherThanTrials = 20
)

func newSheetCache() *costCache[*runsheet.Sheet] {
	return newCostCache(maxCachedTrials, func(s *runsheet.Sheet) int { return otherThanTrials + len(s.Trials) })
}

// keptRun is a run as tables and figures need it, in one state of its journals and marks.
type keptRun struct {
	run                                          *report.Run
	trialsEnded, trialsNotNeeded, attemptsFailed int32
}

func newRunCache() *costCache[keptRun] {
	return newCostCache(maxCachedTrials, func(r keptRun) int { return otherThanTrials + len(r.run.Trials) })
}
