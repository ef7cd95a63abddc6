package guest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Line is what the guest says of its progress on its console.
type Line struct {
	Kind  LineKind
	At    time.Duration // virtual time since the boot
	Sheet int           // from 0: begun, ended
	Text  string        // ended, failed: what went wrong, empty when nothing did; fault: it, in JSON
}

// LineKind is what a line is about. Closed list.
type LineKind string

const (
	LineTime   LineKind = "time"   // so much virtual time has passed
	LineBegun  LineKind = "begun"  // a sheet
	LineEnded  LineKind = "ended"  // a sheet
	LineCosts  LineKind = "costs"  // of the sheet that ends next, see [Costs]
	LineFault  LineKind = "fault"  // an injected one has begun or ended
	LineDone   LineKind = "done"   // the whole job is done
	LineFailed LineKind = "failed" // none of them could be
)

// lineStart marks the guest's own lines among those of its kernel.
const lineStart = "linktrial-guest "

func (l Line) String() string {
	return fmt.Sprintf("%s%s %d %d %s", lineStart, l.Kind, l.At.Milliseconds(), l.Sheet, strconv.Quote(l.Text))
}

// ParseLine reads a line of the console; false for the kernel's own.
func ParseLine(s string) (Line, bool) {
	rest, ours := strings.CutPrefix(strings.TrimSpace(s), lineStart)
	f := strings.SplitN(rest, " ", 4)
	if !ours || len(f) != 4 {
		return Line{}, false
	}
	l := Line{Kind: LineKind(f[0])}
	switch l.Kind {
	case LineTime, LineBegun, LineEnded, LineCosts, LineFault, LineDone, LineFailed:
	default:
		return Line{}, false
	}
	ms, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil || ms < 0 || ms > int64(1<<63-1)/int64(time.Millisecond) {
		return Line{}, false
	}
	l.At = time.Duration(ms) * time.Millisecond
	if l.Sheet, err = strconv.Atoi(f[2]); err != nil || l.Sheet < 0 {
		return Line{}, false
	}
	if l.Text, err = strconv.Unquote(f[3]); err != nil {
		return Line{}, false
	}
	return l, true
}
