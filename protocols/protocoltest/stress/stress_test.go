package stress_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linktrial/internal/checkout"
	"linktrial/protocols/protocoltest/stress"
)

// The thread that starts processes stays.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("linktrial/internal/process.init.func1.1"))
}

// variable is how many transfers each driver as installed is to carry, on request (make
// stress); those with a sanitizer carry one in sanitizedShare of it.
const (
	variable       = "LINKTRIAL_STRESS"
	sanitizedShare = 10
)

// few is how many transfers a driver carries in make test, and a round of them.
const few, fewRound = 60, 20

// environment makes a sanitizer's first report end the driver by a signal, or with an
// exit code that no driver has. A driver ends with _exit and whatever it holds, so that
// leaks are not looked for.
var environment = map[string][]string{
	installed:   nil,
	"race":      {"GORACE=halt_on_error=1"},
	"address":   {"ASAN_OPTIONS=abort_on_error=1:detect_leaks=0:detect_stack_use_after_return=1"},
	"undefined": {"UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1"},
	"thread":    {"TSAN_OPTIONS=halt_on_error=1:report_thread_leaks=0"},
}

// installed is a build as an installation has it.
const installed = "installed"

// subject is a driver, and who carries its transfers.
type subject struct {
	name   string
	builds []string
	way    func(t *testing.T, build string) stress.Way
	// absent is what the driver says where this kernel does not have what it needs.
	absent string
}

func subjects() []subject {
	alone := func(name string, tags ...string) subject {
		return subject{name: name, builds: []string{installed, "race"}, way: func(t *testing.T, build string) stress.Way {
			return stress.Way{Ends: goDriver(t, name, build, tags...)}
		}}
	}
	cxx := func(name, driver string, options map[string]any) subject {
		return subject{name: name, builds: []string{installed, "address", "undefined", "thread"}, way: func(t *testing.T, build string) stress.Way {
			d := cxxDriver(t, driver, build)
			d.Options = options
			return stress.Way{Ends: d}
		}}
	}
	kernel := cxx("sctp-kernel", "sctp", map[string]any{"stack": "kernel"})
	kernel.absent = "this kernel has no SCTP"
	split := subject{name: "split", builds: []string{installed, "race"}, way: func(t *testing.T, build string) stress.Way {
		relay := func(accept, connect string) stress.Driver {
			d := goDriver(t, "split", build)
			d.Options = map[string]any{"accept": accept, "connect": connect}
			return d
		}
		return stress.Way{Ends: goDriver(t, "tcp", installed), Relays: []stress.Driver{relay("tcp", "haul"), relay("haul", "tcp")}}
	}}
	return []subject{
		cxx("sctp", "sctp", map[string]any{"stack": "userland"}), kernel, cxx("udt", "udt", nil),
		alone("tcp"), alone("quic"), alone("haul"), alone("lttcp"), alone("probe"), split, alone("scps", "standin"),
	}
}

// TestDrivers: no driver crashes, hangs or fails under many small transfers, several at
// once, on a busy machine, and with its processes told to stop in the middle; as it is
// installed, and with what sanitizers and the race detector see.
func TestDrivers(t *testing.T) {
	count := 0
	if text := os.Getenv(variable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q, expected a number of transfers", variable, text)
		}
		count = n
	}
	for _, s := range subjects() {
		for _, build := range s.builds {
			t.Run(s.name+"/"+build, func(t *testing.T) {
				t.Parallel()
				o := stress.Options{Transfers: few, Round: fewRound, Load: 1, Seed: uint64(count)}
				if count > 0 {
					o.Transfers, o.Round, o.Progress = count, 0, progress(t)
					if build != installed {
						o.Transfers = max(1, count/sanitizedShare)
					}
				}
				check(t, s, build, o)
			})
		}
	}
}

func check(t *testing.T, s subject, build string, o stress.Options) {
	t.Helper()
	way := s.way(t, build)
	begin := time.Now()
	r, err := stress.Run(t.Context(), way, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Unsupported != "" {
		if s.absent == "" || !strings.Contains(r.Unsupported, s.absent) {
			t.Errorf("unsupported: %s", r.Unsupported)
		}
		t.Log(r.Unsupported)
		return
	}
	t.Logf("%s in %s", summary(r), time.Since(begin).Round(100*time.Millisecond))
	for _, c := range r.Crashes {
		t.Errorf("crash %s", c)
	}
	for _, f := range r.Failures {
		t.Errorf("failed: %s", f)
	}
	if r.Crashed+r.Failed == 0 && (r.Transfers < o.Transfers || r.Listeners == 0 || r.Stopped == 0) {
		t.Errorf("too few: %s", summary(r))
	}
}

func summary(r *stress.Report) string {
	return fmt.Sprintf("%d transfers, %d clients and %d listeners told to stop in the middle, %d crashes, %d failures", r.Transfers, r.Stopped, r.Listeners, r.Crashed, r.Failed)
}

// progress tells every minute how far it has come, and of crashes and failures at once:
// the end may be hours away.
func progress(t *testing.T) func(stress.Report) {
	last, crashes, failures := time.Now(), 0, 0
	return func(r stress.Report) {
		for ; crashes < len(r.Crashes); crashes++ {
			t.Log("crash " + r.Crashes[crashes])
		}
		for ; failures < len(r.Failures); failures++ {
			t.Log("failed: " + r.Failures[failures])
		}
		if time.Since(last) >= time.Minute {
			last = time.Now()
			t.Log(summary(&r))
		}
	}
}

// root is the top folder of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func run(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// built is the driver that make build left in LINKTRIAL_BIN.
func built(name string) (d stress.Driver, is bool) {
	bin := os.Getenv("LINKTRIAL_BIN")
	d.Dir = filepath.Join(bin, "drivers", name)
	_, err := os.Stat(filepath.Join(d.Dir, name))
	return d, bin != "" && err == nil
}

// goDriver builds a driver written in Go into a folder of the test.
func goDriver(t *testing.T, name, build string, tags ...string) stress.Driver {
	t.Helper()
	if d, is := built(name); is && build == installed && tags == nil {
		return d
	}
	from := filepath.Join("protocols", name)
	if _, err := os.Stat(filepath.Join(root(t), from, "cmd", name)); err == nil {
		from = filepath.Join(from, "cmd", name)
	}
	dir := filepath.Join(t.TempDir(), name)
	env, args := []string{"CGO_ENABLED=0"}, []string{"build", "-tags", strings.Join(tags, ","), "-o", filepath.Join(dir, name)}
	if build == "race" {
		env, args = []string{"CGO_ENABLED=1"}, append(args, "-race")
	}
	run(t, env, "go", append(args, "./"+from)...)
	if name == "scps" {
		run(t, []string{"CGO_ENABLED=0"}, "go", "build", "-o", filepath.Join(dir, "gateway"), "./protocols/scps/standin")
	}
	text, err := os.ReadFile(filepath.Join(root(t), from, "driver.yaml"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "driver.yaml"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return stress.Driver{Dir: dir, Environment: environment[build]}
}

// making keeps tests from running make in one folder at once.
var making sync.Mutex

// cxxDriver builds a driver written in C++; what was compiled before is kept.
func cxxDriver(t *testing.T, name, build string) stress.Driver {
	t.Helper()
	if d, is := built(name); is && build == installed {
		return d
	}
	out := filepath.Join(root(t), "build", "stress", build)
	args := []string{"-C", filepath.Join("protocols", "cxx"), "OUT=" + out, name}
	if build != installed {
		args = append(args, "SANITIZE="+build)
	}
	making.Lock()
	defer making.Unlock()
	run(t, nil, "make", args...)
	d := stress.Driver{Dir: filepath.Join(out, name), Environment: environment[build]}
	if name == "udt" && build == "thread" {
		known, err := filepath.Abs(filepath.Join("testdata", "libudt.tsan"))
		if err != nil {
			t.Fatal(err)
		}
		d.Environment = []string{environment[build][0] + ":suppressions=" + known}
	}
	return d
}
