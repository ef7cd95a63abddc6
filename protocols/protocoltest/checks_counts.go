package protocoltest

import (
	"context"
	"fmt"
	"time"

	"linktrial/protocols/contract"
)

// countBehind is how far the counts of a sample may be behind: what a driver
// writes or reads at once.
const countBehind = 64 * kib

// countSize is about a payload of which countBehind is a small part.
const countSize = mib

// checkSampleCounts holds the counts of samples against what the link has seen.
// A machine that is too busy for the first hold gets a longer one.
func checkSampleCounts(ctx context.Context, s *suite) (string, error) {
	return s.anyInterval(ctx, []hold{
		{size: countSize, lasts: 1200 * time.Millisecond, intervalMS: 20},
		{size: countSize, lasts: 5 * time.Second, intervalMS: 100},
	}, (*held).counts)
}

// counts looks at a sample that each end took in the second half of the hold.
// What the client's protocol had not been given in the middle of the hold left
// the client afterwards, and what had not arrived was held or left afterwards: so
// much is missing in the counts at most, whatever a protocol adds or sends again.
func (t *held) counts() (detail string, again bool, err error) {
	if t.half.IsZero() {
		return "", true, fmt.Errorf("the client ended while the link held the payload's end back")
	}
	size, all := t.p.Transfer.SizeBytes, t.sent.Content
	handed, arrived := size-(all-t.atHalf.Content)-countBehind, size-(all-t.atHalf.Passed)-countBehind
	c, err := t.lastHeld(t.c, t.atClient)
	if err != nil {
		return "", true, err
	}
	srv, err := t.lastHeld(t.srv, t.atServer)
	if err != nil {
		return "", true, err
	}
	for _, x := range []struct {
		who, name string
		count     *int64
		least     int64
		what      string
	}{
		{"client", "sent_bytes", &c.SentBytes, handed, "had been handed to the protocol"},
		{"client", "acked_bytes", c.AckedBytes, arrived, "had reached the server half a second before or earlier"},
		{"server", "sent_bytes", &srv.SentBytes, arrived, "had reached the server half a second before or earlier"},
	} {
		if x.count != nil && *x.count < x.least {
			return "", true, fmt.Errorf("%s: %s is %d in a sample of a transfer of %d bytes, expected %d at least: so much, and %d bytes more, %s",
				x.who, x.name, *x.count, size, x.least, countBehind, x.what)
		}
	}
	return fmt.Sprintf("client %d sent of %d at least, server %d received of %d at least", c.SentBytes, max(0, handed), srv.SentBytes, max(0, arrived)), false, nil
}

// lastHeld returns the last sample that a driver took in the second half of the hold.
func (t *held) lastHeld(d *proc, b bounds) (*contract.Sample, error) {
	from := t.half.Sub(b.begun[0])
	var last *contract.Sample
	for _, e := range d.all(about(contract.KindSample, t.p.Transfer.ID)) {
		if e.at.Before(t.released) && time.Duration(e.Sample.ElapsedNS) > from+tolerance(from) {
			last = e.Sample
		}
	}
	if last == nil {
		return nil, fmt.Errorf("%s: no sample from %s to %s after the transfer's start, at an interval of %d ms",
			d.name, ms(from), ms(t.released.Sub(b.begun[0])), t.p.SampleIntervalMS)
	}
	return last, nil
}
