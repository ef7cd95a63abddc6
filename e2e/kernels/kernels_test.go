//go:build kernels

package kernels

import (
	"context"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/e2e/kernels/machine"
)

// releases are those of Debian 12: the one that it came with, and the newer one
// that it offers beside.
var releases = []string{"6.1", "6.12"}

// modules are what the drivers, the emulator and the comparisons need.
var modules = []string{
	"tun", "veth", "sch_netem", "xfrm_user", "nfnetlink",
	"tcp_vegas", "tcp_bbr", "sctp", "dccp_ipv4",
}

// later are modules in whose place the driver tcp brings something of its own
// along, until the tests have loaded them.
var later = []string{"tcp_westwood", "tcp_veno"}

// limit is how long one kernel may take on a busy host, silence how long it may
// compute and say nothing: the longest single test takes a fraction of that.
const (
	limit   = 30 * time.Minute
	silence = 2 * time.Minute
	memory  = 1 << 30
)

var inside = flag.String("inside", "", "run only the tests inside that match this regular expression (as -run has it)")

// TestKernels boots each kernel and takes its records as sub-tests.
func TestKernels(t *testing.T) {
	files := machineFiles(t)
	for _, release := range releases {
		t.Run(release, func(t *testing.T) { boot(t, release, files) })
	}
	if !t.Failed() && *inside == "" {
		showPage(t)
	}
}

func boot(t *testing.T, release string, files []machine.File) {
	cache, err := machine.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	k, err := machine.FindKernel(t.Context(), cache, release)
	if err != nil {
		t.Fatal(err)
	}
	dir := outputFolder(t, release)
	r, err := machine.Boot(t.Context(), machine.Config{
		Kernel: k, Modules: modules, Later: later, Files: files, Dir: dir,
		Limit: limit, Silence: silence, MemoryBytes: memory,
	})
	if r == nil {
		t.Fatal(err)
	}
	for _, rec := range r.Records {
		if !slices.ContainsFunc(groups, func(g group) bool { return g.name == rec.Group }) {
			t.Errorf("a record of the group %q, which has no table", rec.Group)
		}
		t.Run(rec.Name, func(t *testing.T) {
			if rec.Outcome == machine.Failed {
				t.Errorf("%s: %s", rec.Name, rec.Detail)
			}
		})
	}
	switch {
	case err != nil:
		t.Fatal(err)
	case r.Exit != 0:
		t.Errorf("the tests inside ended with exit code %d; the console is %s", r.Exit, r.Console)
	case len(r.Records) == 0:
		t.Errorf("the tests inside reported nothing; the console is %s", r.Console)
	}
	t.Logf("kernel %s took %s, %s of processor time", r.Release, r.Elapsed.Round(time.Second), r.Computed.Round(time.Second))
	if !t.Failed() && *inside == "" {
		keep(t, dir, booted{release, k.Package, k.Version, time.Now().UTC().Format(time.DateOnly), r.Computed.Seconds(), r.Records})
	}
}

// outputFolder is where console and records of a kernel stay for people to read.
func outputFolder(t *testing.T, release string) string {
	dir, err := filepath.Abs(filepath.Join("..", "..", "build", "kernels", release))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// machineFiles builds the first process and the tests, and takes the drivers of
// LINKTRIAL_BIN with the libraries that they need.
func machineFiles(t *testing.T) []machine.File {
	bin := os.Getenv("LINKTRIAL_BIN")
	if bin == "" {
		t.Fatal("LINKTRIAL_BIN is not set; expected the folder with linktrial and drivers/ (make build)")
	}
	dir := t.TempDir()
	build(t, "build", "-o", filepath.Join(dir, "init"), "./guest")
	build(t, "test", "-c", "-tags", "kernels", "-o", filepath.Join(dir, "tests"), "./inside")
	files := []machine.File{
		{Name: "/init", From: filepath.Join(dir, "init"), Executable: true},
		{Name: "/tests", From: filepath.Join(dir, "tests"), Executable: true},
		{Name: machine.TestPattern, Content: []byte(*inside)},
	}
	drivers := filepath.Join(bin, "drivers")
	err := filepath.WalkDir(drivers, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(drivers, p)
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		executable := st.Mode()&0o111 != 0
		files = append(files, machine.File{Name: "/drivers/" + name, From: p, Executable: executable})
		if executable {
			files = append(files, libraries(t, p)...)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("drivers: %v (make build)", err)
	}
	return files
}

func build(t *testing.T, args ...string) {
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

var library = regexp.MustCompile(`(/[^ ]+) \(0x`)

// libraries are those that a program is linked with, and what loads them.
func libraries(t *testing.T, program string) []machine.File {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ldd", program).CombinedOutput()
	if strings.Contains(string(out), "not a dynamic executable") {
		return nil
	}
	if err != nil {
		t.Fatalf("libraries of %s: ldd: %v: %s", program, err, out)
	}
	var files []machine.File
	for _, m := range library.FindAllStringSubmatch(string(out), -1) {
		files = append(files, machine.File{Name: m[1], From: m[1], Executable: true})
	}
	return files
}
