package audit

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// results checks results.csv: a row for each treatment.
func (x *exported) results(r io.Reader) error {
	seen := map[string]bool{}
	err := x.each(r, func(r *row) {
		name := r.text("treatment")
		x.c.Objects++
		if seen[name] {
			x.find("treatment %s has a second row", name)
		}
		seen[name] = true
		if r.text("sheet_hash") != x.a.run.SheetHash {
			x.find("treatment %s: the sheet is %s, the run's is %s", name, r.text("sheet_hash"), x.a.run.SheetHash)
		}
		counts := map[string]int{}
		for _, n := range []string{"trials", "valid", "failed", "excluded", "not_ended", "extra_attempts"} {
			counts[n] = r.whole(n)
		}
		values, digits := map[string]float64{}, map[string]int{}
		for _, n := range valueNames {
			values[n], digits[n] = r.real(n+"_kb_per_s"), decimals(r.text(n+"_kb_per_s"), 4)
		}
		if _, has := r.columns["delivery_mean_s"]; has {
			delivery := map[string]float64{}
			for _, n := range deliveryNames {
				delivery[n] = r.real(n)
			}
			x.delivery(name, delivery)
		}
		x.treatment(name, counts, values, func(name string, got, want float64) bool { return same(got, want, digits[name]) })
	})
	for _, name := range x.names {
		if err == nil && !seen[name] {
			x.find("treatment %s has no row", name)
		}
	}
	return err
}

// valueNames are the values that are computed again, as files name them.
var valueNames = []string{"average", "max", "min", "sd", "median"}

func (s *summary) value(name string) float64 {
	if s.valid == 0 {
		return math.NaN()
	}
	return map[string]float64{"average": s.mean, "max": s.most, "min": s.least, "sd": s.sd, "median": s.median}[name] / kilobyte
}

// treatment checks the counts and the values that a file has of a treatment.
func (x *exported) treatment(name string, counts map[string]int, values map[string]float64, equal func(name string, got, want float64) bool) {
	s := x.by[name]
	if s == nil {
		s = &summary{} // missing: it has no trials
	}
	for _, one := range []struct {
		name string
		want int
	}{{"trials", s.trials}, {"valid", s.valid}, {"failed", s.failed}, {"excluded", s.excluded}, {"not_ended", s.notEnded}, {"extra_attempts", s.extra}} {
		if got, has := counts[one.name]; has && got != one.want {
			x.find("treatment %s: %s is %d, by the journals %d", name, one.name, got, one.want)
		}
	}
	for _, n := range valueNames {
		if got, has := values[n]; has && !equal(n, got, s.value(n)) {
			x.find("treatment %s: %s is %.9g KB/s, by the journals %.9g", name, n, got, s.value(n))
		}
	}
}

// maxMarkdown is the largest results.md that is read.
const maxMarkdown = 64 << 20

// markdown checks the first table of the run in results.md.
func (x *exported) markdown(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, maxMarkdown))
	if err != nil {
		return err
	}
	section := ""
	for _, s := range strings.Split(string(b), "\n## ") {
		if strings.Contains(s, "\nRun "+x.a.run.ID+", sheet ") {
			section = s
			break
		}
	}
	if section == "" {
		return fmt.Errorf("it has no section that names run %s", x.a.run.ID)
	}
	perKB := kbpsIn(section)
	rows := map[string][]string{}
	for _, line := range strings.Split(section, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if name := cells[0]; strings.HasPrefix(line, "| ") && rows[name] == nil {
			rows[name] = cells
		}
	}
	for _, name := range x.names {
		s := x.by[name]
		label := x.a.sheet.Label(name)
		cells := rows[label]
		x.c.Objects++
		if len(cells) < 7 {
			x.find("the table of run %s has no row %s", x.a.run.ID, label)
			continue
		}
		if want := fmt.Sprintf("%d/%d", s.valid, s.trials); cells[1] != want {
			x.find("treatment %s: %s trials are valid, by the journals %s", name, cells[1], want)
		}
		for i, n := range []string{"average", "max", "min", "sd", "median"} {
			got, err := strconv.ParseFloat(cells[2+i], 64)
			if want := s.value(n) * perKB; !same(orNaN(got, err == nil), want, decimals(cells[2+i], 0)) {
				x.find("treatment %s: %s is %s, by the journals %.9g", name, n, cells[2+i], want)
			}
		}
	}
	return nil
}

// kbpsIn is how many of the unit that a table of throughputs names are 1 KB/s. Tables of
// earlier versions name none and are in KB/s.
func kbpsIn(section string) float64 {
	switch {
	case strings.Contains(section, "| Average, B/s |"):
		return kilobyte
	case strings.Contains(section, "| Average, MB/s |"):
		return 1. / kilobyte
	}
	return 1
}
