package tun

import (
	"time"

	"linktrial/internal/radiocontrol"
)

// overdue is how late packets came out in a trial. All that come out at one moment are one
// delay, that of the packet which was due first, so that the sum is a time in which the
// emulator did not do what was due.
type overdue struct {
	tolerate time.Duration // 0: nobody asks
	late     radiocontrol.Late
}

func (o *overdue) start(tolerate time.Duration) { *o = overdue{tolerate: tolerate} }

func (o *overdue) add(late time.Duration) {
	o.late.Longest = max(o.late.Longest, late)
	o.late.Missed += max(0, late-o.tolerate)
}

// report is nil where nobody asks.
func (o *overdue) report() *radiocontrol.Late {
	if o.tolerate == 0 {
		return nil
	}
	late := o.late
	return &late
}
