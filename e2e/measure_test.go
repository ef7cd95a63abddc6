package e2e

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/internal/testkind"
)

// TestMeasure: over an emulated radio of 2 Mbit/s and 30 ms, 'linktrial measure' finds the
// capacity within 3 %, the delay within 1 ms and the loss exactly, within the time that it
// says beforehand, and judges the link. A comparison follows from it. Interrupted, it aborts
// its run.
func TestMeasure(t *testing.T) {
	testkind.OfTest(t, testkind.RealTime, "measures an emulated radio")
	p := inPieces(t)
	if _, stderr, code := p.run("measure", "--orchestrator", p.url); code != 1 || !strings.Contains(stderr, "linktrial measure --radio NAME") {
		t.Errorf("without a radio: exit %d, %s", code, stderr)
	}
	file := filepath.Join(p.work, "link.csv")
	begun := time.Now()
	page := p.must("measure", "--radio", "transports-link", "--quiet", "--csv", file)
	if took := time.Since(begun); took > 2*time.Minute {
		t.Errorf("took %s", took)
	}
	for _, use := range []string{"voice", "chat and positions", "chat while a file is sent", "pictures", "files"} {
		if !strings.Contains(strings.Join(strings.Fields(page), " "), use+" YES") {
			t.Errorf("not good enough for %s:\n%s", use, page)
		}
	}
	for _, way := range []string{"client → server", "server → client"} {
		expectMeasured(t, file, "capacity", "capacity", way, 2000, 0.03*2000)
		expectMeasured(t, file, "capacity", "largest packet (payload of UDP)", way, 1472, 0)
		// 128 bytes at 2 Mbit/s take 0.5 ms.
		expectMeasured(t, file, "small packets, idle link", "delay, median", way, 30.5, 1)
		expectMeasured(t, file, "small packets, idle link", "loss", way, 0, 0)
		expectMeasured(t, file, "messages, idle link", "delivered of 10 KiB", way, 100, 0)
		// 1024 bytes and their headers take 4.2 ms, and 10240 in 9 packets 42 ms.
		expectMeasured(t, file, "messages, idle link", "time of 1 KiB, median", way, 34.2, 1)
		expectMeasured(t, file, "messages, idle link", "time of 10 KiB, median", way, 72, 2)
	}
	if again := p.must("measure", "--show", ""); again != page {
		t.Errorf("the newest measurement is\n%s\nafter\n%s", again, page)
	}

	compare := p.must("compare", "--dry-run")
	for _, line := range []string{"\nname: compare\n", "\nradio: \"transports-link\"\n", "\nsize: 1536 KiB\n"} {
		if !strings.Contains(compare, line) {
			t.Errorf("no %q in the comparison:\n%s", line, compare)
		}
	}
	if _, stderr, code := p.run("compare", "--protocols", "haul", "--orchestrator", p.url); code != 1 || !strings.Contains(stderr, "at least two protocols") {
		t.Errorf("a comparison of one protocol: exit %d, %s", code, stderr)
	}

	r := p.start("measure", "--radio", "transports-link", "--orchestrator", p.url)
	r.waitFor("running", 30*time.Second)
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(20 * time.Second); code != 1 || !strings.Contains(r.output(), "the measurement was aborted") {
		t.Errorf("interrupted: exit %d\n%s", code, r.output())
	}
	if runs := p.must("run", "list"); strings.Count(runs, "aborted") != 1 {
		t.Errorf("the run goes on:\n%s", runs)
	}
	walkedSeries(t, p, campaignOf(t, file))
}

// campaignOf is the campaign of an exported file.
func campaignOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "\n")
	campaign, _, _ := strings.Cut(rows, ",")
	return campaign
}

// walkedSeries makes a series by the capacities of a measurement, interrupts it, and
// holds its file against what the radio has.
func walkedSeries(t *testing.T, p *pieces, campaign string) {
	t.Helper()
	file := filepath.Join(p.work, "walk.csv")
	r := p.start("measure", "--show", campaign, "--every", "1s", "--csv", file, "--orchestrator", p.url)
	waitUntil(t, "two measurements of a series", time.Minute, func() bool { return strings.Count(r.output(), "UTC  voice YES") >= 2 }, r.output)
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(20 * time.Second); code != 0 {
		t.Errorf("interrupted: exit %d\n%s", code, r.output())
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 3 {
		t.Fatalf("%v, %v", rows, err)
	}
	for _, row := range rows[1:3] { // a third one was aborted
		for _, delay := range row[9:11] {
			if ms, err := strconv.ParseFloat(delay, 64); err != nil || math.Abs(ms-30.5) > 1 {
				t.Errorf("delay in %q, expected 30.5 ms", row)
			}
		}
		if row[6] != "yes" || row[11] != "0" || row[12] != "0" {
			t.Errorf("a point of the series is %q", row)
		}
	}
}

// expectMeasured holds one value of the exported file against what the radio has.
func expectMeasured(t *testing.T, file, group, metric, way string, want, within float64) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r[1] != "value" || r[2] != group || r[3] != metric || r[4] != way {
			continue
		}
		got, err := strconv.ParseFloat(r[5], 64)
		if err != nil || math.Abs(got-want) > within {
			t.Errorf("%s, %s, %s: %s, expected %g ± %g", group, metric, way, r[5], want, within)
		}
		return
	}
	t.Errorf("no %s, %s, %s", group, metric, way)
}
