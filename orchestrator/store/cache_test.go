package store

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCostCache(t *testing.T) {
	c := newCostCache(100, func(n int) int { return n })
	for i := range 10 {
		c.add(fmt.Sprint(i), 20)
	}
	for i := range 10 {
		_, ok := c.get(fmt.Sprint(i))
		require.Equal(t, i >= 5, ok, "%d", i)
	}
	_, _ = c.get("5") // used again: 6 makes room
	c.add("new", 20)
	_, ok := c.get("5")
	require.True(t, ok)
	_, ok = c.get("6")
	require.False(t, ok)
	c.add("new", 20) // known: costs nothing more
	require.Equal(t, 100, c.sum)
	c.add("too large", 1000) // is given out once and not kept
	require.Zero(t, c.sum)
	require.Zero(t, c.lru.Len())

	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range 1000 {
				c.add(fmt.Sprint(i%30), 7)
				c.get(fmt.Sprint(i % (20 + w)))
			}
		})
	}
	workers.Wait()
	require.LessOrEqual(t, c.sum, 100)
	require.Equal(t, 7*c.lru.Len(), c.sum)
}
