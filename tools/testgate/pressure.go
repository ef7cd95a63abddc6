package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// pressureFile has how much of the time some process waited for a processor
// (Documentation/accounting/psi.rst of the kernel).
const pressureFile = "/proc/pressure/cpu"

// pressure is a reading of it. Where the kernel has none, everything is zero and
// nobody waits.
type pressure struct {
	percent float64       // of the last ten seconds
	total   time.Duration // since the machine was started
	at      time.Time
}

func readPressure() pressure {
	b, err := os.ReadFile(pressureFile)
	if err != nil {
		return pressure{at: time.Now()}
	}
	return parsePressure(string(b))
}

func parsePressure(text string) pressure {
	p := pressure{at: time.Now()}
	line, _, _ := strings.Cut(text, "\n")
	var avg60, avg300 float64
	var us int64
	if _, err := fmt.Sscanf(line, "some avg10=%f avg60=%f avg300=%f total=%d", &p.percent, &avg60, &avg300, &us); err == nil {
		p.total = time.Duration(us) * time.Microsecond
	}
	return p
}

// since is the share of the time since then in which some process waited for a
// processor.
func (p pressure) since() string {
	now := readPressure()
	wall := now.at.Sub(p.at)
	if wall <= 0 || now.total == 0 {
		return "pressure unknown"
	}
	return fmt.Sprintf("pressure %.0f %%", 100*float64(now.total-p.total)/float64(wall))
}
