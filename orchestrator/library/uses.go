package library

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"

	"linktrial/orchestrator/plan"
)

// Uses lists the saved plans that name a radio. Of a plan with faults, which names its
// radios in a way that is not known, any mention counts.
func (l *Library) Uses(ctx context.Context, radio string) ([]string, error) {
	rows, err := l.db.SavedPlans(ctx)
	if err != nil {
		return nil, fmt.Errorf("list plans: %w", err)
	}
	word, err := regexp.Compile(`(^|[^a-z0-9-])` + regexp.QuoteMeta(radio) + `($|[^a-z0-9-])`)
	if err != nil {
		return nil, fmt.Errorf("radio %q: %w", radio, err)
	}
	var out []string
	for _, r := range rows {
		if !bytes.Contains(r.Text, []byte(radio)) { // most plans: they need not be read
			continue
		}
		read, err := plan.Parse(ctx.Err, r.Name+".yaml", r.Text, l.cfg.Catalog)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && word.Match(r.Text),
			err == nil && slices.ContainsFunc(read.Cells, func(c plan.Cell) bool { return c.Radio.Name == radio }):
			out = append(out, r.Name)
		}
	}
	return out, nil
}
