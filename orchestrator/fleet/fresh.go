package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/fleet/fleetdb"
)

// FreshFor is how long a preflight's transfers speak for the treatments of a run: a day
// at the radios begins with one.
const FreshFor = 12 * time.Hour

// fingerprint identifies a treatment between nodes, by all that a transfer's fate can
// depend on before a run: the driver and what it is told, the radio, nodes and addresses.
// Its name and label, and the sizes and channels of runs, are not among them.
func fingerprint(s *runsheet.Sheet, t *runsheet.Treatment, at map[radio.Role]*nodes.Node) string {
	bare := *t
	bare.Name, bare.Label, bare.DriverVersion, bare.Digests = "", "", "", nil
	bare.Via = slices.Clone(t.Via)
	for i := range bare.Via {
		bare.Via[i].DriverVersion, bare.Via[i].Digests = "", nil
	}
	type end struct {
		Role          radio.Role
		Name, Address string
	}
	var ends []end
	for _, role := range radio.Roles {
		if n := at[role]; n != nil {
			ends = append(ends, end{role, n.Name, n.RadioAddress})
		}
	}
	b, err := json.Marshal(struct {
		Treatment runsheet.Treatment
		Radio     string
		Ends      []end
	}{bare, s.Cell.Radio, ends})
	if err != nil {
		panic(fmt.Sprintf("a sheet that was encoded before cannot be encoded: %v", err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Unproven returns, for people, what the runs of a plan lack of a fresh preflight: one
// that has carried a transfer of each treatment on the nodes that will run it, and found
// that it works. Runs on nodes with emulated radios need none: their lab vouches for the
// path. It returns nothing where nothing is lacking.
func (f *Fleet) Unproven(ctx context.Context, cells []Cell) ([]string, error) {
	all := f.cfg.Nodes.List()
	names := map[string][]string{} // treatments, by fingerprint
	var order []string
	for i := range cells {
		c := &cells[i]
		at := map[radio.Role]*nodes.Node{}
		for role, name := range c.Nodes {
			if k := slices.IndexFunc(all, func(n nodes.Node) bool { return n.Name == name }); k >= 0 {
				at[role] = &all[k]
			}
		}
		if lead := at[radio.RoleClient]; lead == nil || lead.Emulated {
			continue
		}
		for j := range c.Sheet.Treatments {
			t := &c.Sheet.Treatments[j]
			if t.Missing != "" {
				continue
			}
			print := fingerprint(c.Sheet, t, at)
			if names[print] == nil {
				order = append(order, print)
			}
			if !slices.Contains(names[print], t.Name) {
				names[print] = append(names[print], t.Name)
			}
		}
	}
	if len(order) == 0 {
		return nil, nil
	}
	found, err := f.db.NewestPreflightTreatments(ctx, fleetdb.NewestPreflightTreatmentsParams{Fingerprints: order, Since: time.Now().Add(-FreshFor)})
	if err != nil {
		return nil, fmt.Errorf("preflights of the treatments: %w", err)
	}
	works := map[string]bool{}
	for _, t := range found {
		works[t.Fingerprint] = t.Works
	}
	var never, failed []string
	for _, print := range order {
		worked, tried := works[print]
		for _, name := range names[print] {
			switch {
			case worked:
			case tried && !slices.Contains(failed, name):
				failed = append(failed, name)
			case !tried && !slices.Contains(never, name):
				never = append(never, name)
			}
		}
	}
	var out []string
	if len(failed) > 0 {
		out = append(out, fmt.Sprintf("The last preflight of these nodes found that transfers of %s do not work.", strings.Join(failed, ", ")))
	}
	if len(never) > 0 {
		out = append(out, fmt.Sprintf("No preflight of these nodes has carried a transfer of %s within the last %.0f hours.", strings.Join(never, ", "), FreshFor.Hours()))
	}
	return out, nil
}
