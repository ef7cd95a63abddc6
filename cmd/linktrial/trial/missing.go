package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/yamldoc"
)

// Missing is treatments of a campaign that no node can run, although its plan does
// not expect that: it gives no reason with missing. Each is its name and why.
type Missing []string

// FindMissing asks the orchestrator which treatments of a campaign are not run. The
// text is that of its plan.
func FindMissing(ctx context.Context, base, campaign string, text []byte) (Missing, error) {
	c := linktrialv1connect.NewResultServiceClient(client.HTTP(), base, client.Options())
	res, err := c.Summarize(ctx, connect.NewRequest(&linktrialv1.SummarizeRequest{Ids: []string{campaign}}))
	if err != nil {
		return nil, client.Error(base, err)
	}
	expected := expectedMissing(text)
	var out Missing
	seen := map[string]bool{}
	for _, run := range res.Msg.Runs {
		for _, t := range run.Treatments {
			if t.Missing == "" || expected[t.Name] || seen[t.Name] {
				continue
			}
			seen[t.Name] = true
			out = append(out, terminal.Printable(t.Name+": "+t.Missing))
		}
	}
	return out, nil
}

// expectedMissing is the treatments for which a plan gives the reason why they may
// be missing, and the mixes that use one.
func expectedMissing(text []byte) map[string]bool {
	out := map[string]bool{}
	root := yamldoc.Parse("plan", text).Root().Mapping()
	for _, v := range root.Field("treatments").List() {
		if m := v.Mapping(); m.Field("missing").Present() {
			out[m.Field("name").String("")] = true
		}
	}
	for _, v := range root.Field("mixes").List() {
		m := v.Mapping()
		for _, f := range m.Field("flows").List() {
			if out[f.Mapping().Field("treatment").String("")] {
				out[m.Field("name").String("")] = true
			}
		}
	}
	return out
}

// Say prints what will not be run, before the rest is.
func (m Missing) Say() {
	for _, t := range m {
		fmt.Fprintf(os.Stderr, "treatment %s; its trials are left out\n", t)
	}
}

// Err is an error where something is missing.
func (m Missing) Err() error {
	if len(m) == 0 {
		return nil
	}
	return fmt.Errorf("%s not run: %s; where that is expected, the plan gives the reason with missing", terminal.Count(len(m), "treatment"), strings.Join(m, "; "))
}

// Writable reports why files cannot be written into a folder, which need not exist
// yet. It leaves nothing behind.
func Writable(dir string) error {
	at, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for {
		st, err := os.Stat(at)
		switch {
		case err == nil && !st.IsDir():
			return fmt.Errorf("results cannot be written to %s: %s is no folder", dir, at)
		case err == nil:
			f, err := os.CreateTemp(at, ".linktrial-*")
			if err != nil {
				return fmt.Errorf("results cannot be written to %s: %w", dir, err)
			}
			f.Close()
			return os.Remove(f.Name())
		case !os.IsNotExist(err):
			return fmt.Errorf("results cannot be written to %s: %w", dir, err)
		}
		at = filepath.Dir(at)
	}
}
