package core

import "time"

// leap is by how much more than asked for the time may pass between two calls
// before it counts as a leap of the clock: the node slept, or somebody set it.
const leap = time.Second

// clock makes a time that neither runs back nor leaps of one that may: what a
// connection has measured stays meaningful when a laptop was suspended.
type clock struct {
	shift    time.Duration // to be added to the caller's time
	last     time.Duration // as this clock has it
	caller   time.Duration // the same moment, as the caller has it
	expected time.Duration // when the caller was to call again, by its own time; 0: not known
}

// read turns the caller's time into the connection's.
func (k *clock) read(now time.Duration) time.Duration {
	if k.expected > 0 && now > k.expected+leap {
		// Of a long wait not even that much has passed for sure.
		k.shift -= now - min(k.expected, k.caller+leap)
	}
	t := now + k.shift
	if t < k.last {
		k.shift += k.last - t
		t = k.last
	}
	k.last, k.caller, k.expected = t, now, 0
	return t
}

// callers turns a time of the connection into the caller's; it is at least 1.
func (k *clock) callers(t time.Duration) time.Duration { return max(t-k.shift, 1) }
