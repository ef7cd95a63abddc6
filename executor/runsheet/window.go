package runsheet

import "time"

// WindowLength is the length of the common window of a trial's flows; 0 where there
// are not several, or a time does not bound each of them.
func WindowLength(flows []Flow) time.Duration {
	if len(flows) < 2 {
		return 0
	}
	first, last := flows[0].Start, time.Duration(0)
	for i := range flows {
		f := &flows[i]
		if f.Duration <= 0 {
			return 0
		}
		first, last = min(first, f.Start), max(last, f.Start+f.Duration)
	}
	return last - first
}
