package uml

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/driverfolder"
	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/lab/uml/guest"
)

// Sheet is one run for the lab: its identity and its run sheet.
type Sheet struct {
	Run      string // as in the store; letters, digits, hyphens, underscores
	Document []byte // the encoded run sheet
	// Signature of run and sheet; the agents in the guest follow no other.
	Signature signature.Signature
	Network   *radio.Network // the sheet's
	Trials    int            // the sheet's
	Faults    *guest.Faults  // to be injected; nil: none
}

// RunConfig is what [Run] needs.
type RunConfig struct {
	Kernel Kernel
	// Dir is shared with the guests: sheets and journals of all runs, and the
	// consoles. It is made where it does not exist. A run whose journal is there
	// already continues where that ends.
	Dir        string
	Sheets     []Sheet
	Executable string // the linktrial binary, static or with libraries the host has
	Drivers    string // folder of drivers; can be a list of folders, as PATH has it
	// Trust are the keys that the agents in the guests trust to sign run sheets.
	Trust []signature.PublicKey

	// Seed of the guests' random numbers: the plan's.
	Seed uint64
	// Jobs is how many guests run at a time; 0: one for each processor.
	Jobs int
	// SheetsPerBoot is how many sheets, next to each other in Sheets, a guest
	// executes; 0 is 1. Results do not depend on Jobs, but may on this: a later
	// sheet of a boot starts from another state of the kernel's generator.
	SheetsPerBoot int
	MemoryBytes   int64 // of a guest; 0 is 512 MiB, of which it takes what it uses
	// Watchdog is how long a guest may show no progress; 0 is three minutes. It is
	// wall time in which the guest has a processor, and in no case more than twenty
	// times as much wall time. A guest reports its time every 20 s by its own clock.
	Watchdog time.Duration
	// Count has the guests' costs counted, see [SheetResult.Host]. Trace has their
	// system calls counted with strace, which takes fifty times as long and no
	// virtual time.
	Count, Trace bool
	// Vitals is how often, in virtual time, guests note what their processes use, see
	// [SheetResult.Vitals]; 0: never.
	Vitals time.Duration
	// Progress is called from one goroutine at a time, a few times a second.
	Progress func(Progress)
	// Fault is called in the same way when a fault in a run has begun, could not be
	// injected, or has ended.
	Fault  func(run string, f faultlog.Fault)
	Logger *slog.Logger // nil: none
}

const (
	defaultMemory   = 512 << 20
	defaultWatchdog = 3 * time.Minute
)

// Epoch is what every guest's clock shows when it boots.
var Epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Result of [Run], in the order of the sheets.
type Result struct {
	Sheets []SheetResult
	Wall   time.Duration
}

// SheetResult is the outcome of one run.
type SheetResult struct {
	Run string
	// Journals by role, those that exist. They may end in the midst of a trial
	// when Err is set.
	Journals map[radio.Role]string
	// Faults is the list of the faults injected into the run; empty where there is none.
	Faults string
	Trials int // in the sheet
	Ended  int // with a terminal record

	notNeeded int // of Ended: left out by a rule to stop by
	attempts  int // of the trial under way

	// Err is why the run did not complete: [ErrHung], [ErrDied], or an
	// error of the guest. Nil also when trials failed.
	Err     error
	Virtual time.Duration // of the guest's time, from the sheet's begin to its end
	Wall    time.Duration
	// ToBegin is the wall time from the guest's start to the start of the sheet.
	ToBegin time.Duration
	// Switches are how often the guest's scheduler switched away from the threads
	// of each process, by role, those of the drivers included; the first process
	// is [guest.Emulator].
	Switches guest.Costs
	// Host is what the whole boot has cost the host; zero without Count.
	Host HostCost
	// Vitals is a file with a [guest.Look] in JSON on each line; empty without
	// [RunConfig.Vitals].
	Vitals string
	// SystemCalls of each process of the guest by name of the call; nil without Trace.
	SystemCalls map[string]map[string]int64
}

var (
	// ErrHung reports that a guest showed no progress and was ended.
	ErrHung = errors.New("the guest showed no progress and was ended")
	// ErrDied reports that a guest ended before its work did.
	ErrDied = errors.New("the guest ended before its work was done")
	// ErrChanged reports that a journal was changed after it had been written; the run
	// has none then.
	ErrChanged = errors.New("a journal was changed after it had been written")
)

var runForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// Run executes sheets in guests and returns when all have ended or ctx has.
// The error is of the lab as a whole; the error of one guest is in the results
// of its sheets, and the other guests continue.
func Run(ctx context.Context, cfg RunConfig) (Result, error) {
	if err := cfg.complete(); err != nil {
		return Result{}, err
	}
	release, err := cfg.Kernel.hold()
	if err != nil {
		return Result{}, err
	}
	defer release()
	for _, s := range cfg.Sheets {
		in := guest.Sheet{Run: s.Run}
		if err := os.MkdirAll(filepath.Join(cfg.Dir, s.Run), 0o755); err != nil {
			return Result{}, fmt.Errorf("shared folder: %w", err)
		}
		if err := os.WriteFile(filepath.Join(cfg.Dir, in.File()), s.Document, 0o644); err != nil {
			return Result{}, fmt.Errorf("shared folder: %w", err)
		}
		if err := os.WriteFile(filepath.Join(cfg.Dir, in.SignatureFile()), []byte(s.Signature.String()+"\n"), 0o644); err != nil {
			return Result{}, fmt.Errorf("shared folder: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(cfg.Dir, guest.TrustFile), signature.FormatKeys("", cfg.Trust...), 0o644); err != nil {
		return Result{}, fmt.Errorf("shared folder: %w", err)
	}
	began := time.Now()
	r := &runner{cfg: cfg, results: make([]SheetResult, len(cfg.Sheets)), began: began}
	for i, s := range cfg.Sheets {
		r.results[i] = SheetResult{Run: s.Run, Trials: s.Trials}
	}
	batches := make(chan int)
	var workers sync.WaitGroup
	cpus := processors()
	for i := range cfg.Jobs {
		workers.Go(func() {
			for first := range batches {
				r.batch(ctx, first, cpus[i%len(cpus)])
			}
		})
	}
	for first := 0; first < len(cfg.Sheets) && ctx.Err() == nil; first += cfg.SheetsPerBoot {
		select {
		case batches <- first:
		case <-ctx.Done():
		}
	}
	close(batches)
	workers.Wait()
	for i := range r.results {
		if err := r.collect(i); err != nil {
			return Result{}, err
		}
		if ctx.Err() != nil && r.results[i].Wall == 0 && r.results[i].Err == nil {
			r.results[i].Err = context.Cause(ctx)
		}
	}
	return Result{Sheets: r.results, Wall: time.Since(began)}, ctx.Err()
}

func (c *RunConfig) complete() error {
	if c.Kernel.Path == "" {
		return errors.New("no guest kernel: build one with 'linktrial lab kernel'")
	}
	if len(c.Trust) == 0 && len(c.Sheets) > 0 {
		return errors.New("no key is trusted: the agents in the guests would refuse every run sheet")
	}
	seen := map[string]bool{}
	for _, s := range c.Sheets {
		if !runForm.MatchString(s.Run) || seen[s.Run] {
			return fmt.Errorf("run %q: expected letters, digits, hyphens and underscores, and no run twice", s.Run)
		}
		seen[s.Run] = true
		if s.Network == nil {
			return fmt.Errorf("run %s: its radio cannot be emulated", s.Run)
		}
	}
	for _, p := range []*string{&c.Dir, &c.Executable, &c.Kernel.Path} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = abs
	}
	list, err := driverfolder.Abs(c.Drivers)
	if err != nil {
		return err
	}
	c.Drivers = list
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("shared folder: %w", err)
	}
	for _, p := range append(driverfolder.Split(c.Drivers), c.Executable, c.Kernel.Path) {
		if _, err := os.Stat(p); err != nil {
			return fmt.Errorf("the virtual-time lab needs %s: %w", p, err)
		}
	}
	if c.Jobs <= 0 {
		c.Jobs = runtime.NumCPU()
	}
	c.SheetsPerBoot = max(1, c.SheetsPerBoot)
	if c.MemoryBytes <= 0 {
		c.MemoryBytes = defaultMemory
	}
	if c.Watchdog <= 0 {
		c.Watchdog = defaultWatchdog
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// runner is one call of [Run].
type runner struct {
	cfg   RunConfig
	began time.Time

	mu      sync.Mutex // guards the rest
	results []SheetResult
	virtual time.Duration // of all guests together
}

// processors returns those that this process may use.
func processors() []int {
	var set unix.CPUSet
	var list []int
	if err := unix.SchedGetaffinity(0, &set); err == nil {
		for i := range len(set) * 64 {
			if set.IsSet(i) {
				list = append(list, i)
			}
		}
	}
	if len(list) == 0 {
		list = []int{0}
	}
	return list
}

// batch runs the sheets from first on that share a boot.
func (r *runner) batch(ctx context.Context, first, cpu int) {
	end := min(first+r.cfg.SheetsPerBoot, len(r.cfg.Sheets))
	orders := guest.Job{Trace: r.cfg.Trace, Vitals: r.cfg.Vitals}
	for _, s := range r.cfg.Sheets[first:end] {
		orders.Sheets = append(orders.Sheets, guest.Sheet{Run: s.Run, Network: s.Network, Faults: s.Faults})
	}
	name := fmt.Sprintf("guest-%04d", first)
	err := r.order(name, orders)
	if err == nil {
		b := &boot{runner: r, cpu: cpu, first: first, count: end - first, name: name, sheet: -1}
		err = b.run(ctx)
	}
	if err == nil {
		return
	}
	r.cfg.Logger.Warn("guest did not finish its sheets", "guest", name, "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := first; i < end; i++ {
		if !r.results[i].ended() {
			r.results[i].Err = err
		}
	}
}

func (s *SheetResult) ended() bool { return s.Wall > 0 || s.Err != nil }

func (r *runner) order(name string, o guest.Job) error {
	b, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("job of %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(r.cfg.Dir, name+".json"), b, 0o644); err != nil {
		return fmt.Errorf("job of %s: %w", name, err)
	}
	return nil
}

func (r *runner) journal(i int, role radio.Role) string {
	s := guest.Sheet{Run: r.cfg.Sheets[i].Run}
	return filepath.Join(r.cfg.Dir, s.StateDir(role), "runs", s.Run, "journal.jsonl")
}

// collect finds the journals that a sheet left, and counts the trials that ended.
func (r *runner) collect(i int) error {
	res := &r.results[i]
	res.Journals = map[radio.Role]string{}
	if errors.Is(res.Err, ErrChanged) {
		return nil
	}
	for _, n := range r.cfg.Sheets[i].Network.Nodes {
		path := r.journal(i, n.Role)
		if _, err := os.Stat(path); err == nil {
			res.Journals[n.Role] = path
		} else if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("journal of run %s: %w", res.Run, err)
		}
	}
	for file, to := range map[string]*string{guest.Sheet{Run: res.Run}.FaultsFile(): &res.Faults, guest.Sheet{Run: res.Run}.VitalsFile(): &res.Vitals} {
		path := filepath.Join(r.cfg.Dir, file)
		if _, err := os.Stat(path); err == nil {
			*to = path
		}
	}
	var c counter
	if err := hold(r.journal(i, radio.RoleClient)).read(c.take); err != nil {
		return err
	}
	res.Ended, res.notNeeded = c.ended, c.notNeeded
	return nil
}
