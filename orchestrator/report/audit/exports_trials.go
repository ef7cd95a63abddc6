package audit

import (
	"io"
	"strconv"
	"strings"
	"time"
)

// trials checks trials.csv: a row for each attempt.
func (x *exported) trials(r io.Reader) error {
	left := map[key]*value{}
	for i := range x.values {
		left[key{x.values[i].trial, x.values[i].attempt}] = &x.values[i]
	}
	seen := map[key]bool{}
	counted := map[int]bool{}
	probes := 0
	err := x.each(r, func(r *row) {
		k := key{r.whole("trial"), r.whole("attempt")}
		x.c.Objects++
		if seen[k] {
			x.find("trial %d, attempt %d: a second row", k.trial, k.attempt)
			return
		}
		seen[k] = true
		f := left[k]
		if f == nil {
			if k.trial >= 0 && k.trial < len(x.a.sheet.Trials) && len(x.a.sheet.Trials[k.trial].Flows) == 0 {
				probes++
				return
			}
			x.find("trial %d, attempt %d: the file has the attempt, the journal has not", k.trial, k.attempt)
			return
		}
		delete(left, k)
		if r.text("counted") == "true" {
			if counted[k.trial] {
				x.findAt(f, "a second attempt of the trial counts")
			}
			counted[k.trial] = true
		}
		x.trial(r, f)
	})
	for i := range x.values {
		if f := &x.values[i]; err == nil && left[key{f.trial, f.attempt}] != nil {
			x.findAt(f, "the journal has the attempt, the file has not")
		}
	}
	return err
}

func (x *exported) trial(r *row, f *value) {
	if r.text("treatment") != f.treatment || r.whole("iteration") != f.iteration {
		x.findAt(f, "the file has it as %s in iteration %s, the sheet as %s in iteration %d", r.text("treatment"), r.text("iteration"), f.treatment, f.iteration)
	}
	if r.text("verdict") != f.verdict || r.text("reason") != f.reason {
		x.findAt(f, "the file has %s %s, the store %s %s", r.text("verdict"), r.text("reason"), f.verdict, f.reason)
	}
	if r.text("counted") != strconv.FormatBool(f.counted) {
		x.findAt(f, "the file has counted: %s; by the journals: %t", r.text("counted"), f.counted)
	}
	if r.text("verified") != strconv.FormatBool(f.confirmed) {
		x.findAt(f, "the file has verified: %s; by the journals: %t", r.text("verified"), f.confirmed)
	}
	if f.digest != "" && r.text("sha256") != f.digest {
		x.findAt(f, "the file has the SHA-256 %s, the journal %s", r.text("sha256"), f.digest)
	}
	if got := r.real("throughput_kb_per_s"); !same(got, orNaN(f.rate/kilobyte, f.rate > 0), decimals(r.text("throughput_kb_per_s"), 4)) {
		x.findAt(f, "the file has %s KB/s, by the journals it is %.9g", r.text("throughput_kb_per_s"), f.rate/kilobyte)
	}
	if f.derived {
		if got := r.real("elapsed_s"); !same(got, f.elapsed.Seconds(), decimals(r.text("elapsed_s"), 6)) {
			x.findAt(f, "the file has an elapsed time of %s s, the journal %.6f s", r.text("elapsed_s"), f.elapsed.Seconds())
		}
		if got := r.real("connect_s"); !same(got, orNaN(f.connect.Seconds(), f.connect > 0), decimals(r.text("connect_s"), 6)) {
			x.findAt(f, "the file has a connecting time of %s s, the journal %.6f s", r.text("connect_s"), f.connect.Seconds())
		}
	}
	x.trialControl(r, f)
	if got, err := time.Parse(time.RFC3339, r.text("started_utc")); err != nil || got.Sub(f.started).Abs() > time.Millisecond {
		x.findAt(f, "by the file it started at %q, by the journal at %s", r.text("started_utc"), f.started.UTC().Format(time.RFC3339Nano))
	}
}

// trialControl checks the columns about control packets. Files of earlier versions have
// none.
func (x *exported) trialControl(r *row, f *value) {
	for _, role := range []string{"client", "relay", "server"} {
		column := "control_packets_" + role
		if _, has := r.columns[column]; !has {
			continue
		}
		want := ""
		for _, n := range f.control {
			if n.Role == role && n.Unknown == "" {
				want = strconv.FormatInt(n.Packets, 10)
			}
		}
		if got := r.text(column); got != want {
			x.findAt(f, "the file has %q control packets at the %s, the store %q", got, role, want)
		}
	}
}

// samples checks samples.csv: how many samples each end of each flow has, and the sum
// of their bytes.
func (x *exported) samples(r io.Reader) error {
	type sums struct {
		samples int
		bytes   int64
	}
	got := map[stream]*sums{}
	err := x.each(r, func(r *row) {
		k := stream{r.whole("trial"), r.whole("attempt"), r.whole("flow"), r.text("side")}
		s := got[k]
		if s == nil {
			s = &sums{}
			k.side = strings.Clone(k.side)
			got[k] = s
		}
		s.samples++
		n, _ := strconv.ParseInt(r.text("sent_bytes"), 10, 64)
		s.bytes += n
	})
	if err != nil {
		return err
	}
	if len(got) == 0 && len(x.a.streams) > 0 {
		x.c.note("%s has no samples of the run: they are kept for a time (docs/backup.md)", x.from)
		return nil
	}
	for k, st := range x.a.streams {
		x.c.Objects++
		s := got[k]
		if s == nil {
			s = &sums{}
		}
		if s.samples != st.samples || s.bytes != st.bytes {
			at := ofTrial(k.trial, k.attempt)
			at.File = x.from
			x.c.find(at, "flow %d (%s) has %d samples with %d bytes in sum, in the journal %d with %d", k.flow, k.side, s.samples, s.bytes, st.samples, st.bytes)
		}
		delete(got, k)
	}
	for k := range got {
		x.find("trial %d, attempt %d, flow %d (%s) has samples that the journals do not have", k.trial, k.attempt, k.flow, k.side)
	}
	return nil
}
