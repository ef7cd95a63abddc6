package lab

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"linktrial/cmd/linktrial/terminal"
	"linktrial/executor/runsheet"
	"linktrial/internal/atomicfile"
	"linktrial/internal/faultlog"
	"linktrial/lab/faults"
	"linktrial/lab/uml"
	"linktrial/lab/uml/guest"
)

// faultsOf are the faults of one run, the index-th of the campaign: each run has nodes
// and a clock of its own. Those of a schedule hit every run that has the node, those
// from a seed are drawn anew for each; nil: none.
func (v *virtual) faultsOf(index int, sh *runsheet.Sheet) *guest.Faults {
	if v.schedule == nil {
		return nil
	}
	nodes := nodesOf([]*runsheet.Sheet{sh}, faults.Virtual)
	out := &guest.Faults{Listed: nodes.On(v.schedule.Faults), Nodes: nodes}
	if r := v.schedule.Random; r != nil {
		out.Seed, out.Every, out.Choices = r.Seed, r.Every, r.Choices
		if index > 0 {
			out.Seed = rand.New(rand.NewPCG(r.Seed, uint64(index))).Uint64()
		}
	}
	return out
}

// watchFaults has the faults that guests report shown among the trials; nil: there are
// none.
func (v *virtual) watchFaults(cfg *uml.RunConfig, p *terminal.Progress) *faultCampaign {
	if v.schedule == nil {
		return nil
	}
	out := &faultCampaign{r: v.rehearsal, faults: map[int]faultlog.Fault{}}
	known := map[string]int{} // faults by run, of which the last number is known
	runs := len(cfg.Sheets)
	cfg.Fault = func(run string, f faultlog.Fault) {
		name := fmt.Sprintf("fault %d", f.Number)
		if runs > 1 {
			name = fmt.Sprintf("run %s, a fault", run) // the list counts those of all runs
		}
		p.Line("%s", faultSaid(name, f, f.Number <= known[run], uml.Epoch))
		known[run] = max(known[run], f.Number)
	}
	return out
}

// collect makes one list of those of all runs, in the order of the runs.
func (c *faultCampaign) collect(result uml.Result) error {
	if c == nil {
		return nil
	}
	var list bytes.Buffer
	for _, r := range result.Sheets {
		if r.Faults == "" {
			continue // the run has not begun
		}
		b, err := os.ReadFile(r.Faults)
		if err != nil {
			return err
		}
		all, err := faultlog.Read(bytes.NewReader(b))
		if err != nil {
			return fmt.Errorf("%s: %w", r.Faults, err)
		}
		for _, f := range all {
			f.Number, f.Run = len(c.faults)+1, r.Run
			c.faults[f.Number] = f
			if err := faultlog.Append(&list, f); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(c.r.faultList()), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(c.r.faultList(), list.Bytes(), 0o644)
}
