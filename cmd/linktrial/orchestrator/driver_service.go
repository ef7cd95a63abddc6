package orchestrator

import (
	"context"
	"strings"
	"sync"
	"time"

	"linktrial/agents/runner"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/driver"
	"linktrial/cmd/linktrial/setting"
	"linktrial/protocols/protocoltest"
)

// servedDrivers implements the orchestrator's interface to the drivers on its machine.
type servedDrivers struct {
	s *setting.Settings

	mu     sync.Mutex
	states []*linktrialv1.DriverState
	at     time.Time
}

// probeAgain is how long the drivers' states are cached: probing starts one process
// for each driver.
const probeAgain = 10 * time.Second

func (d *servedDrivers) States(ctx context.Context) ([]*linktrialv1.DriverState, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.states != nil && time.Since(d.at) < probeAgain {
		return d.states, nil
	}
	all, err := runner.List(ctx, d.s.Drivers)
	if err != nil {
		return nil, err
	}
	states := []*linktrialv1.DriverState{}
	for _, st := range all {
		x := &linktrialv1.DriverState{Name: st.Driver.Name, Version: st.Driver.Version, Implementation: st.Driver.Implementation, Sha256: st.Driver.SHA256,
			Unsupported: st.Driver.Unsupported, Choices: map[string]string{}, Remarks: st.Remarks()}
		for option, values := range st.Choices {
			x.Choices[option] = strings.Join(values, ",")
		}
		states = append(states, x)
	}
	d.states, d.at = states, time.Now()
	return states, nil
}

func (d *servedDrivers) Check(ctx context.Context, name string, quick bool, tell func(c *linktrialv1.ConformanceCheck, total int)) error {
	dir, m, err := driver.Find(d.s, name)
	if err != nil {
		return err
	}
	total := len(protocoltest.Selected(m, nil))
	_, err = protocoltest.Run(ctx, protocoltest.Target{Manifest: m, Dir: dir, Reads: setting.DriverReads()}, protocoltest.Options{Quick: quick, Progress: func(c protocoltest.Check) {
		message := c.Detail
		if c.Outcome == protocoltest.Failed {
			message += " (expected: " + c.About + "; driver contract, " + strings.Join(c.Holds, ", ") + ")"
		}
		tell(&linktrialv1.ConformanceCheck{Name: c.Name, Outcome: string(c.Outcome), Message: message, Seconds: c.Elapsed.Seconds()}, total)
	}})
	return err
}
