package preflight

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
)

var timeCheck = nodeCheck{checkkind.Time, func(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) []*linktrialv1.Check {
	return one(c.checkTimeService(ctx))
}, false}

// timeLimit bounds the question to the time service.
const timeLimit = 3 * time.Second

// checkTimeService checks what keeps the node's clock: chrony where it is, else
// the kernel's state.
func (c Config) checkTimeService(ctx context.Context) *linktrialv1.Check {
	check := newTimeCheck()
	if c.Emulated {
		check.State, check.Found = notChecked, "the nodes of a laboratory share the clock of one machine"
		return check
	}
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "chronyc", "-c", "tracking").Output()
	if errors.Is(err, exec.ErrNotFound) {
		var tx unix.Timex
		_, err := unix.Adjtimex(&tx)
		return judgeKernelClock(check, &tx, err)
	}
	if err != nil {
		check.State, check.Found = warning, "chrony is installed and does not answer: "+lastLine(out, err)
		check.Remedy = "start it ('systemctl enable --now chrony')"
		return check
	}
	t, err := parseTracking(out)
	if err != nil {
		check.State, check.Found = unknown, "chrony's answer cannot be read: "+err.Error()
		return check
	}
	return judgeTracking(check, t)
}

func newTimeCheck() *linktrialv1.Check {
	return &linktrialv1.Check{Expected: "a time service that follows a clock",
		Meaning: "the clock is right now and wanders off during the day: a quartz is wrong by seconds a day",
		Remedy:  "install chrony on the node and point it at the orchestrator's laptop or a GPS receiver, and see that it is reached"}
}

func lastLine(out []byte, err error) string {
	if s := strings.TrimSpace(string(out)); s != "" { // chronyc writes its errors there
		lines := strings.Split(s, "\n")
		return lines[len(lines)-1]
	}
	return err.Error()
}

// tracking is what chronyc(1) reports of the system clock.
type tracking struct {
	reference string
	stratum   int
	offset    time.Duration // of the system clock, by chrony's estimate
	bound     time.Duration // of its error: half the root delay and the root dispersion
	leap      string
}

// parseTracking reads "chronyc -c tracking": one line of fourteen fields, in
// the order of the report that chronyc(1) describes.
func parseTracking(out []byte) (*tracking, error) {
	r := csv.NewReader(bytes.NewReader(out))
	r.FieldsPerRecord = 14
	f, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("expected 14 fields: %w", err)
	}
	t := &tracking{reference: f[1], leap: f[13]}
	if t.reference == "" {
		t.reference = f[0]
	}
	if t.stratum, err = strconv.Atoi(f[2]); err != nil {
		return nil, fmt.Errorf("stratum %q", f[2])
	}
	var seconds [3]float64
	for i, k := range []int{4, 10, 11} {
		if seconds[i], err = strconv.ParseFloat(f[k], 64); err != nil || !(seconds[i] > -1e9 && seconds[i] < 1e9) {
			return nil, fmt.Errorf("field %d: expected seconds, found %q", k+1, f[k])
		}
	}
	t.offset = time.Duration(seconds[0] * 1e9)
	t.bound = time.Duration((seconds[1]/2 + seconds[2]) * 1e9)
	return t, nil
}

func judgeTracking(check *linktrialv1.Check, t *tracking) *linktrialv1.Check {
	if t.stratum == 0 || strings.EqualFold(t.leap, "Not synchronised") {
		check.State, check.Found = warning, "chrony runs and follows no clock"
		check.Remedy = "see 'chronyc sources' on the node: it must reach a server, the orchestrator's laptop or a GPS receiver"
		return check
	}
	check.State = ok
	check.Found = fmt.Sprintf("chrony follows %s at stratum %d: %s off, within %s", t.reference, t.stratum, formatDuration(t.offset.Abs()), formatDuration(t.bound.Abs()))
	if t.offset.Abs() > checkkind.MaxClockOffset {
		check.State = warning
		check.Meaning = "chrony is still bringing the clock to the right time"
		check.Remedy = "wait, or set the clock at once with 'chronyc makestep'"
	}
	return check
}

// judgeKernelClock judges the kernel's state where there is no chrony.
func judgeKernelClock(check *linktrialv1.Check, tx *unix.Timex, err error) *linktrialv1.Check {
	switch {
	case err != nil:
		check.State, check.Found = unknown, "there is no chrony, and the kernel does not report it: "+err.Error()
	case tx.Status&unix.STA_UNSYNC != 0:
		check.State, check.Found = warning, "there is no chrony, and no time service sets the kernel's clock"
	default:
		check.State = ok
		check.Found = fmt.Sprintf("there is no chrony; another service keeps the kernel's clock, within %s by its own word", formatDuration(time.Duration(tx.Esterror)*time.Microsecond))
	}
	return check
}
