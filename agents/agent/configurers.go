package agent

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"linktrial/executor"
	"linktrial/protocols/contract"
)

// lately is how long a driver that has ended may have made a change that is noticed now.
const lately = time.Minute

// configurers starts drivers, and knows which of those that run, or ran lately, may change
// the node's network.
type configurers struct {
	executor.Runner
	may func(protocol string) bool

	mu      sync.Mutex
	running map[string]int       // processes of each such driver
	ended   map[string]time.Time // when the last one did
}

func newConfigurers(r executor.Runner, may func(protocol string) bool) *configurers {
	return &configurers{Runner: r, may: may, running: map[string]int{}, ended: map[string]time.Time{}}
}

// Start implements [executor.Runner].
func (c *configurers) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (executor.Process, error) {
	process, err := c.Runner.Start(ctx, protocol, p, payload)
	if err != nil || !c.may(protocol) {
		return process, err
	}
	c.mu.Lock()
	c.running[protocol]++
	c.mu.Unlock()
	go func() {
		<-process.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running[protocol]--
		c.ended[protocol] = time.Now()
	}()
	return process, nil
}

// runner starts drivers this way, and prepares them where the runner does.
func (c *configurers) runner() executor.Runner {
	if p, ok := c.Runner.(executor.Preparer); ok {
		return struct {
			*configurers
			executor.Preparer
		}{c, p}
	}
	return c
}

// names are those of the drivers.
func (c *configurers) names() (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, running := range c.running {
		if running > 0 || time.Since(c.ended[name]) < lately {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
