package store

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"linktrial/executor/runsheet"
)

// maxCachedTrials bounds the decoded sheets that are kept; a trial takes about
// half a kilobyte.
const maxCachedTrials = 200_000

// sheetCache holds decoded sheets by their hash, the least recently used of
// which make room for others.
type sheetCache struct {
	mu     sync.Mutex
	lru    *simplelru.LRU[string, *runsheet.Sheet]
	trials int
}

func newSheetCache() *sheetCache {
	c := &sheetCache{}
	lru, err := simplelru.NewLRU(maxCachedTrials, func(_ string, s *runsheet.Sheet) { c.trials -= cost(s) })
	if err != nil {
		panic(err) // a size that is not positive
	}
	c.lru = lru
	return c
}

// cost counts what does not grow with trials, too: profiles and topologies.
func cost(s *runsheet.Sheet) int { return 20 + len(s.Trials) }

func (c *sheetCache) get(hash string) (*runsheet.Sheet, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Get(hash)
}

func (c *sheetCache) add(hash string, s *runsheet.Sheet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lru.Contains(hash) {
		return
	}
	c.lru.Add(hash, s)
	for c.trials += cost(s); c.trials > maxCachedTrials; {
		if _, _, ok := c.lru.RemoveOldest(); !ok {
			return
		}
	}
}
