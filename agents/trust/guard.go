package trust

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"linktrial/executor"
	"linktrial/executor/runsheet"
	"linktrial/internal/driverdigest"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// Digester identifies what a driver is made of now. Its error wraps
// [executor.ErrNoDriver] where there is no driver of that name.
type Digester interface {
	Digest(ctx context.Context, protocol string) (driverdigest.Digest, error)
}

// Pinner is a [Digester] whose drivers stay what they were when it last looked
// at them, as an image does whose name has moved on. Pin makes it look again,
// without starting any.
type Pinner interface {
	Pin(ctx context.Context) error
}

// Newest is a [Digester] of folders. It returns the file of a driver's folder that
// changed last, and when; "" where that is not known.
type Newest interface {
	Newest(protocol string) (file string, at time.Time)
}

// DriverError reports that a run sheet does not name the driver that is here.
type DriverError struct {
	Protocol string
	Found    driverdigest.Digest
	Named    []string
	// Newest is the file of the driver's folder that changed last, and when; ""
	// where that is not known.
	Newest   string
	NewestAt time.Time
	// Changed is set when an earlier start in the same run found a driver that
	// the sheet names.
	Changed bool
}

func (e *DriverError) Error() string {
	named := "names no digest for it"
	if len(e.Named) > 0 {
		named = "names " + strings.Join(e.Named, " and ")
	}
	changed := ""
	if e.Changed {
		changed = " now, which it was not when the run began,"
	}
	return fmt.Sprintf("refused: driver %s on this node is %s%s%s and the run sheet %s; put the orchestrator's driver on the node, or have this one accepted with 'linktrial protocol approve %s@%s', and start the plan again",
		e.Protocol, e.Found, e.newest(), changed, named, e.Protocol, e.Found)
}

func (e *DriverError) newest() string {
	if e.Newest == "" {
		return ""
	}
	return fmt.Sprintf(" (the file of its folder that changed last is %s, at %s)", e.Newest, e.NewestAt.UTC().Format(time.RFC3339))
}

// Is makes the executor give a treatment up at once: trying again is of no use.
func (e *DriverError) Is(target error) bool { return target == executor.ErrNoDriver }

// Guard is a runner that starts only what a run sheet names.
type Guard struct {
	Runner  executor.Runner
	Drivers Digester
	Sheet   *runsheet.Sheet
	// Refused is called with the reason when a driver is not started while the run
	// is under way; it can be nil.
	Refused func(error)
}

// CheckAll reports which of the drivers that the sheet needs on this node must not
// be run, as they are now: what is found good here is what runs. One that is not
// here at all is for the executor to report.
func (g *Guard) CheckAll(ctx context.Context, role radio.Role) error {
	if p, ok := g.Drivers.(Pinner); ok {
		if err := p.Pin(ctx); err != nil {
			return fmt.Errorf("refused: the drivers cannot be compared with the run sheet: %w", err)
		}
	}
	var wrong []string
	seen := map[string]bool{}
	for _, u := range g.Sheet.Uses(role) {
		if seen[u.Protocol] {
			continue
		}
		seen[u.Protocol] = true
		err := g.check(ctx, u.Protocol)
		var refused *DriverError
		if err != nil && (errors.As(err, &refused) || !errors.Is(err, executor.ErrNoDriver)) {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

func (g *Guard) check(ctx context.Context, protocol string) error {
	d, err := g.Drivers.Digest(ctx, protocol)
	if err != nil {
		return fmt.Errorf("refused: driver %s cannot be compared with the run sheet: %w", protocol, err)
	}
	named := g.named(protocol)
	if slices.Contains(named, string(d)) {
		return nil
	}
	refused := &DriverError{Protocol: protocol, Found: d, Named: named}
	if n, ok := g.Drivers.(Newest); ok {
		refused.Newest, refused.NewestAt = n.Newest(protocol)
	}
	return refused
}

// named are the digests that the sheet accepts of a protocol.
func (g *Guard) named(protocol string) []string {
	var out []string
	add := func(of string, digests []string) {
		for _, d := range digests {
			if of == protocol && !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	for i := range g.Sheet.Treatments {
		t := &g.Sheet.Treatments[i]
		if t.Missing != "" {
			continue
		}
		add(t.Protocol, t.Digests)
		for _, v := range t.Via {
			add(v.Protocol, v.Digests)
		}
	}
	return out
}

// Start implements [executor.Runner]. It checks again what it is about to
// start, for files can change while a run is under way, and once more when that
// runs, and between a check and a start too. The process is an [executor.Checked].
func (g *Guard) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (executor.Process, error) {
	if err := g.check(ctx, protocol); err != nil {
		return nil, g.refuse(ctx, err)
	}
	proc, err := g.Runner.Start(ctx, protocol, p, payload)
	if err != nil {
		return nil, err
	}
	if err := g.check(ctx, protocol); err != nil {
		proc.Kill()
		<-proc.Done()
		proc.Output().Close()
		return nil, g.refuse(ctx, err)
	}
	return &checked{proc, g, protocol}, nil
}

// checked is a process that a guard has started.
type checked struct {
	executor.Process
	guard    *Guard
	protocol string
}

// Changed implements [executor.Checked]. The guard refuses the driver at its next start,
// which comes where the trial is repeated.
func (c *checked) Changed() string {
	err := c.guard.check(context.Background(), c.protocol) // also where the run has ended
	var refused *DriverError
	if !errors.As(err, &refused) {
		return "" // what cannot be compared now was right when the process had been started
	}
	return fmt.Sprintf("driver %s was replaced while it ran: it is %s now%s, and the run sheet names %s", c.protocol, refused.Found, refused.newest(), strings.Join(refused.Named, " and "))
}

func (g *Guard) refuse(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err // a check that was cut short says nothing of the driver
	}
	var refused *DriverError
	if errors.As(err, &refused) {
		refused.Changed = true // CheckAll found it good
	}
	if g.Refused != nil && (refused != nil || !errors.Is(err, executor.ErrNoDriver)) {
		g.Refused(err)
	}
	return err
}
