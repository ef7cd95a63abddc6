package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"linktrial/internal/testkind"
	"linktrial/orchestrator/report"
)

// freeAddr is an address on the loopback at which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// waitUntil blocks until done returns true. After the limit the test fails and prints
// state.
func waitUntil(t *testing.T, what string, limit time.Duration, done func() bool, state func() string) {
	t.Helper()
	for deadline := time.Now().Add(limit); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s\n%s", limit, what, state())
		}
	}
}

// binDir returns the folder of the program and the drivers.
func binDir(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the lab makes network namespaces")
	}
	dir := os.Getenv("LINKTRIAL_BIN")
	if dir == "" {
		var err error
		if dir, err = filepath.Abs("../bin"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "linktrial")); err != nil {
		t.Fatalf("%v: run make build first", err)
	}
	return dir
}

// dataDir returns a data folder that the database's user can reach, unlike t.TempDir.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "linktrial-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// program runs linktrial with a data folder of its own.
type program struct {
	t    *testing.T
	bin  string
	data string
	work string // its working folder, where results/ appears
}

func newProgram(t *testing.T) *program {
	t.Helper()
	return &program{t: t, bin: binDir(t), data: dataDir(t), work: t.TempDir()}
}

func (p *program) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, "linktrial"), args...)
	cmd.Dir = p.work
	cmd.Env = append(os.Environ(), "LINKTRIAL_DATA="+p.data,
		// Nothing listens there: a rehearsal starts its own orchestrator.
		"LINKTRIAL_ORCHESTRATOR=http://127.0.0.1:9")
	return cmd
}

// run waits for the end and returns what was printed, and the exit code.
func (p *program) run(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// running is a started program whose output can be waited for.
type running struct {
	t    *testing.T
	cmd  *exec.Cmd
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
	done chan struct{}
	err  error
}

// Write receives the output of the program, all of it before done is closed.
func (r *running) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.text.Write(b)
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (p *program) start(args ...string) *running {
	p.t.Helper()
	r := &running{t: p.t, cmd: p.command(args...), more: make(chan struct{}, 1), done: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = r, r
	if err := r.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		r.err = r.cmd.Wait()
		close(r.done)
	}()
	p.t.Cleanup(func() {
		select {
		case <-r.done:
		default:
			r.cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-r.done:
			case <-time.After(40 * time.Second):
				r.cmd.Process.Kill()
				<-r.done
			}
		}
		if p.t.Failed() {
			p.t.Logf("output:\n%s", r.output())
			if b, err := os.ReadFile(filepath.Join(p.data, "logs", "rehearsal.log")); err == nil {
				p.t.Logf("rehearsal.log:\n%s", b)
			}
		}
	})
	return r
}

func (r *running) output() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// waitFor waits until the output matches, and returns the match.
func (r *running) waitFor(pattern string, limit time.Duration) string {
	r.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(limit)
	for {
		if m := re.FindString(r.output()); m != "" {
			return m
		}
		select {
		case <-r.more:
		case <-r.done:
			if m := re.FindString(r.output()); m != "" {
				return m
			}
			r.t.Fatalf("ended (%v) without printing %q", r.err, pattern)
		case <-deadline:
			r.t.Fatalf("did not print %q within %s", pattern, limit)
		}
	}
}

// wait waits for the end and returns the exit code.
func (r *running) wait(limit time.Duration) int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(limit):
		r.t.Fatalf("did not end within %s", limit)
	}
	return r.cmd.ProcessState.ExitCode()
}

// child finds the PID of a process below the program whose command line
// contains all words.
func (r *running) child(words ...string) int {
	r.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		dirs, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			r.t.Fatal(err)
		}
		for _, d := range dirs {
			pid, err := strconv.Atoi(filepath.Base(d))
			if err != nil || !descends(pid, r.cmd.Process.Pid) {
				continue
			}
			b, err := os.ReadFile(filepath.Join(d, "cmdline"))
			if err != nil {
				continue
			}
			line := " " + strings.ReplaceAll(string(b), "\x00", " ")
			all := true
			for _, w := range words {
				all = all && strings.Contains(line, " "+w+" ")
			}
			if all {
				return pid
			}
		}
	}
	r.t.Fatalf("no process below %d whose command line has %q", r.cmd.Process.Pid, words)
	return 0
}

// descends follows parents in proc(5) stat, field 4.
func descends(pid, ancestor int) bool {
	for range 8 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		rest := string(b[bytes.LastIndexByte(b, ')')+1:])
		f := strings.Fields(rest)
		if len(f) < 2 {
			return false
		}
		if pid, err = strconv.Atoi(f[1]); err != nil || pid <= 1 {
			return false
		}
		if pid == ancestor {
			return true
		}
	}
	return false
}

// kill kills a process that the test's own program has started.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

// exported reads the JSON export of a rehearsal.
func (p *program) exported() *report.Dataset {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.work, "results", "*", "*.json"))
	if err != nil || len(files) != 1 {
		p.t.Fatalf("exported JSON files: %v (%v)", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		p.t.Fatal(err)
	}
	var doc struct {
		Dataset report.Dataset `json:"dataset"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		p.t.Fatal(err)
	}
	return &doc.Dataset
}

// runFolders is where labs keep their namespaces and what must be removed after a crash.
var runFolders = []string{"/run/netns", "/run/linktrial"}

// TestMain gives the tests run folders of their own, so that nothing that runs beside
// them on the machine is mistaken for something that they left, and the other way round.
// Those of a mount namespace end with its last process.
func TestMain(m *testing.M) {
	const own = "LINKTRIAL_E2E_OWN_RUN"
	if os.Geteuid() != 0 || os.Getenv(own) != "" {
		testkind.AtOnce(fieldRigs)
		os.Exit(m.Run())
	}
	const script = `set -e
for folder in %s; do mkdir -p $folder; mount -t tmpfs tmpfs $folder; done
exec "$@"`
	unshare, err := exec.LookPath("unshare")
	if err == nil {
		args := []string{"unshare", "--mount", "sh", "-c", fmt.Sprintf(script, strings.Join(runFolders, " ")), "sh"}
		err = syscall.Exec(unshare, append(args, os.Args...), append(os.Environ(), own+"=1"))
	}
	fmt.Fprintf(os.Stderr, "run folders of the tests' own: %v\n", err)
	os.Exit(1)
}

// nothingLeft checks that no namespace or folder of a lab exists.
func nothingLeft(t *testing.T) {
	t.Helper()
	namespaces, _ := filepath.Glob(filepath.Join(runFolders[0], "lt-*"))
	labs, _ := filepath.Glob(filepath.Join(runFolders[1], "labs/*"))
	for _, path := range append(namespaces, labs...) {
		t.Errorf("%s is left behind", path)
	}
}

// plan writes a plan file for the test.
func (p *program) plan(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.work, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}
