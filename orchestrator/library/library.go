// Package library stores plans and starts scheduled ones at their time. Comes in:
// texts of plans, drafts with faults too, and times. Goes out: plans with a
// summary or their faults, and campaigns that the orchestrator starts by itself.
package library

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/service"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/launch"
	"linktrial/orchestrator/library/librarydb"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
	"linktrial/orchestrator/store"
)

// Config says what the library works on.
type Config struct {
	Store   *store.Store
	Catalog plan.Catalog
	// Shipped has the plans that came with Linktrial as *.yaml; nil: none.
	Shipped fs.FS
	// Launcher starts plans, as [launch.Launcher].
	Launcher interface {
		Start(context.Context, launch.Request) (launch.Started, error)
	}
	// Ahead lists the runs that nodes take part in now; they end before others begin.
	Ahead  func() []string
	Logger *slog.Logger
	// Settle is how long after its own start the library starts no plan, so that
	// nodes can connect again; 0 means ten seconds.
	Settle time.Duration
	// Now is the clock, for tests; nil is time.Now.
	Now func() time.Time
}

// Library holds the plans and their schedules. Its methods may be called from
// several goroutines.
type Library struct {
	cfg     Config
	db      *librarydb.Queries
	log     *slog.Logger
	shipped map[string][]byte
	began   time.Time
	wake    chan struct{}
	stop    func()
}

// Plan is one stored plan.
type Plan struct {
	Name     string
	Shipped  bool
	Changed  time.Time // zero for shipped ones
	Revision int
	Text     []byte

	Title    string // the plan's own name, as far as it could be read
	Summary  string // or its first fault
	Problems int
}

// Errors that callers branch on.
var (
	ErrNotFound = errors.New("there is no such plan")
	ErrShipped  = errors.New("came with Linktrial and is read-only")
	ErrRevision = errors.New("was saved in between")
	ErrExists   = errors.New("exists already")
	ErrRefused  = errors.New("refused")
	ErrInUse    = errors.New("is scheduled")
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,47}$`)

// maxText bounds a plan, as orchestrator/plan does.
const maxText = yamldoc.MaxText

// Start resolves the schedules that an earlier orchestrator left half done, marks
// the missed ones, and returns; from then on plans start at their times until
// Stop.
func Start(ctx context.Context, cfg Config) (*Library, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Settle == 0 {
		cfg.Settle = 10 * time.Second
	}
	l := &Library{cfg: cfg, db: librarydb.New(cfg.Store), log: cfg.Logger, shipped: map[string][]byte{}, began: cfg.Now(), wake: make(chan struct{}, 1)}
	if cfg.Shipped != nil {
		files, err := fs.Glob(cfg.Shipped, "*.yaml")
		if err != nil {
			return nil, fmt.Errorf("shipped plans: %w", err)
		}
		for _, f := range files {
			b, err := fs.ReadFile(cfg.Shipped, f)
			if err != nil {
				return nil, fmt.Errorf("shipped plans: %w", err)
			}
			l.shipped[strings.TrimSuffix(f, ".yaml")] = b
		}
	}
	if err := l.resolveClaimed(ctx); err != nil {
		return nil, err
	}
	l.stop = service.Go(context.WithoutCancel(ctx), l.loop)
	return l, nil
}

// Stop ends the library and waits for it. Schedules that are still to come stay
// in the store for the next start.
func (l *Library) Stop() { l.stop() }

// List returns all plans without their text, saved ones first, each kind by name.
func (l *Library) List(ctx context.Context) ([]Plan, error) {
	rows, err := l.db.SavedPlans(ctx)
	if err != nil {
		return nil, fmt.Errorf("list plans: %w", err)
	}
	var out []Plan
	for _, r := range rows {
		p := l.describe(ctx, saved(r))
		p.Text = nil
		out = append(out, p)
	}
	names := make([]string, 0, len(l.shipped))
	for name := range l.shipped {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := l.describe(ctx, Plan{Name: name, Shipped: true, Text: l.shipped[name]})
		p.Text = nil
		out = append(out, p)
	}
	return out, nil
}

func saved(r librarydb.SavedPlan) Plan {
	return Plan{Name: r.Name, Changed: r.ChangedAt, Revision: int(r.Revision), Text: r.Text}
}

// describe adds to a plan its title, and its summary or first fault.
func (l *Library) describe(ctx context.Context, p Plan) Plan {
	read, err := plan.Parse(ctx.Err, p.Name+".yaml", p.Text, l.cfg.Catalog)
	var problems yamldoc.Problems
	switch {
	case err == nil:
		p.Title, p.Summary = read.Name, read.Summary()
	case errors.As(err, &problems):
		p.Problems = problems.Number()
		p.Summary = problems[0].String()
		if n := problems.Number() - 1; n > 0 {
			p.Summary += fmt.Sprintf(" (and %d more)", n)
		}
	default:
		p.Problems, p.Summary = 1, err.Error()
	}
	if p.Title == "" {
		p.Title = titleOf(p.Text) // a draft with faults may have a name all the same
	}
	return p
}

// titleOf is the name that the text of a plan has; empty where it has none.
func titleOf(text []byte) string {
	d := yamldoc.Parse("plan", text)
	root := d.Root()
	if !root.IsMapping() {
		return ""
	}
	return root.Mapping().Field("name").String("")
}

// Get returns one plan with its text.
func (l *Library) Get(ctx context.Context, name string) (Plan, error) {
	if text, ok := l.shipped[name]; ok {
		return l.describe(ctx, Plan{Name: name, Shipped: true, Text: text}), nil
	}
	r, err := l.db.SavedPlan(ctx, name)
	if errors.Is(err, pgx.ErrNoRows) {
		return Plan{}, fmt.Errorf("plan %q: %w", name, ErrNotFound)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("plan %q: %w", name, err)
	}
	return l.describe(ctx, saved(r)), nil
}

// Save stores a plan, also one with faults. revision is the one that was edited;
// 0 means that the plan must be new. It returns [ErrRevision] where somebody
// else has saved the plan since.
func (l *Library) Save(ctx context.Context, name string, text []byte, revision int) (Plan, error) {
	switch {
	case !nameForm.MatchString(name):
		return Plan{}, fmt.Errorf("name %q of a plan: expected at most 48 lower-case letters, digits and hyphens: %w", name, ErrRefused)
	case len(text) > maxText:
		return Plan{}, fmt.Errorf("plan %s is %s long, expected at most %s: %w", name, unit.FormatBytes(int64(len(text))), unit.FormatBytes(maxText), ErrRefused)
	case revision < 0:
		return Plan{}, fmt.Errorf("revision %d of plan %s: expected 0 or more: %w", revision, name, ErrRefused)
	}
	if _, ok := l.shipped[name]; ok {
		return Plan{}, fmt.Errorf("plan %q %w: save it under another name", name, ErrShipped)
	}
	if text == nil {
		text = []byte{}
	}
	var n int64
	var err error
	if revision == 0 {
		n, err = l.db.InsertSavedPlan(ctx, librarydb.InsertSavedPlanParams{Name: name, Text: text, ChangedAt: l.cfg.Now()})
	} else {
		n, err = l.db.UpdateSavedPlan(ctx, librarydb.UpdateSavedPlanParams{Name: name, Text: text, ChangedAt: l.cfg.Now(), Revision: int32(min(revision, 1<<31-1))})
	}
	if err != nil {
		return Plan{}, fmt.Errorf("save plan %s: %w", name, err)
	}
	if n == 0 {
		now, err := l.Get(ctx, name)
		switch {
		case err != nil:
			return Plan{}, err // it was deleted in between
		case revision == 0:
			return Plan{}, fmt.Errorf("plan %q %w, in revision %d: open that one, or choose another name", name, ErrExists, now.Revision)
		}
		return Plan{}, fmt.Errorf("plan %q %w: it is in revision %d by now, and revision %d was edited", name, ErrRevision, now.Revision, revision)
	}
	return l.describe(ctx, Plan{Name: name, Changed: l.cfg.Now(), Revision: revision + 1, Text: text}), nil
}

// Delete removes a saved plan. It returns [ErrInUse] while the plan is scheduled.
func (l *Library) Delete(ctx context.Context, name string) error {
	if _, ok := l.shipped[name]; ok {
		return fmt.Errorf("plan %q %w", name, ErrShipped)
	}
	n, err := l.db.DeleteSavedPlan(ctx, name)
	if err != nil {
		return fmt.Errorf("delete plan %s: %w", name, err)
	}
	if n == 0 {
		if _, err := l.Get(ctx, name); err != nil {
			return err
		}
		return fmt.Errorf("plan %q %w: cancel that first", name, ErrInUse)
	}
	return nil
}

// estimate returns how long a plan will take; the error is the plan's faults.
func (l *Library) estimate(ctx context.Context, p Plan) (time.Duration, error) {
	read, err := plan.Parse(ctx.Err, p.Name+".yaml", p.Text, l.cfg.Catalog)
	if err != nil {
		return 0, err
	}
	sheets, err := sheet.Compile(ctx.Err, read)
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, s := range sheets {
		total += sheet.Total(s)
	}
	return total, nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
