package protocoltest

import (
	"context"
	"fmt"
	"math"
	"time"

	"linktrial/protocols/contract"
)

// The interval of samples doubles after so many, and again after every so many
// more.
const (
	samplesFull = 500
	samplesMore = 250
)

// intervalAfter is the interval that holds once n samples have been taken.
func intervalAfter(n int, interval time.Duration) time.Duration {
	for at := samplesFull; n >= at; at += samplesMore {
		interval *= 2
	}
	return interval
}

// mostSamples is how many samples there are at most in a time, without the final one.
func mostSamples(elapsed, interval time.Duration) int {
	n := 0
	for at := interval; at <= elapsed; at += intervalAfter(n, interval) {
		n++
	}
	return n
}

// sampled checks the samples of one side of a finished transfer.
func sampled(d *proc, id string, interval time.Duration) (int, error) {
	es := d.all(about(contract.KindSample, id))
	res := d.find(about(contract.KindResult, id)).Result
	elapsed := time.Duration(res.ElapsedNS)
	if len(es) == 0 && elapsed > fewSamples*interval {
		return 0, fmt.Errorf("%s: no sample in %s at an interval of %s", d.name, elapsed, interval)
	}
	if err := steady(d.name, append(es[:len(es):len(es)], seen{Event: contract.Event{Sample: res.Final}}), res); err != nil {
		return 0, err
	}
	if n := len(es); n == 0 || es[n-1].Sample.ElapsedNS != res.Final.ElapsedNS || es[n-1].Sample.SentBytes != res.Final.SentBytes {
		return 0, fmt.Errorf("%s: the result's final sample is not the last sample event", d.name)
	}
	// One more for the last sample, one for rounding.
	if most := mostSamples(elapsed, interval) + 2; len(es) > most {
		return 0, fmt.Errorf("%s: %d samples in %s at an interval of %s that doubles after %d samples and after every %d more; expected %d at most",
			d.name, len(es), elapsed, interval, samplesFull, samplesMore, most)
	}
	return len(es), spaced(d.name, es[:len(es)-1], interval)
}

// steady checks that no metric goes back that cannot, and that none counts more
// than there is.
func steady(who string, es []seen, res *contract.Result) error {
	before := make([]float64, len(contract.Metrics))
	for n, e := range es {
		x := e.Sample
		for i := range contract.Metrics {
			f := &contract.Metrics[i]
			now := f.Value(x)
			if math.IsNaN(now) || f.Kind == contract.Gauge {
				continue
			}
			if now < before[i] {
				return fmt.Errorf("%s: %s goes back from %.0f to %.0f in sample %d; a %s metric never decreases", who, f.Name, before[i], now, n+1, f.Kind)
			}
			before[i] = now
		}
		switch {
		case x.AckedBytes != nil && *x.AckedBytes > x.SentBytes:
			return fmt.Errorf("%s: %d bytes acknowledged, but only %d sent", who, *x.AckedBytes, x.SentBytes)
		case x.TransmittedBytes != nil && x.RetransmittedBytes != nil && *x.RetransmittedBytes > *x.TransmittedBytes:
			return fmt.Errorf("%s: retransmitted_bytes is %d, but transmitted_bytes only %d in sample %d", who, *x.RetransmittedBytes, *x.TransmittedBytes, n+1)
		case x.TransmittedBytes != nil && x.AckedBytes != nil && *x.TransmittedBytes-zeroOr(x.RetransmittedBytes) < *x.AckedBytes:
			return fmt.Errorf("%s: %d bytes acknowledged in sample %d, but of %d transmitted_bytes %d were sent again: each was sent once before",
				who, *x.AckedBytes, n+1, *x.TransmittedBytes, zeroOr(x.RetransmittedBytes))
		case x.SentBytes > res.SizeBytes:
			return fmt.Errorf("%s: a sample counts %d bytes of a transfer of %d", who, x.SentBytes, res.SizeBytes)
		}
	}
	return nil
}

func zeroOr(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// spacedOver is over how many samples their distance is judged.
const spacedOver = 20

// spaced checks that samples are as far apart as the interval of their number
// wants. It holds for a driver that a busy machine delays: a sample that is late
// only comes closer to the one after it, by less than an interval.
func spaced(who string, es []seen, interval time.Duration) error {
	for i := 0; i+spacedOver < len(es); i++ {
		// Sample i+1 is the first of them; whether the one after the 500th is
		// still an interval away or two already is not judged.
		each := intervalAfter(i, interval)
		least := (spacedOver - 1) * each
		if took := time.Duration(es[i+spacedOver].Sample.ElapsedNS - es[i].Sample.ElapsedNS); took+tolerance(least) < least {
			return fmt.Errorf("%s: samples %d to %d are %s apart, expected %s at least: after %d samples an interval of %s is %s, and samples that were missed are left out",
				who, i+1, i+spacedOver+1, ms(took), ms(least), i, interval, each)
		}
	}
	return nil
}

// checkSampleShare has the link hold a transfer, so that it lasts, and counts
// the samples. A busy machine misses some, so the share must only be half.
func checkSampleShare(ctx context.Context, s *suite) (string, error) {
	return s.anyInterval(ctx, []hold{
		{lasts: time.Second, intervalMS: 20},
		{lasts: 2 * time.Second, intervalMS: 60},
		{lasts: 5 * time.Second, intervalMS: 200},
	}, (*held).share)
}

// anyInterval judges one transfer after another, until one has enough samples:
// where a judgement says few, the machine may have been too busy for the interval,
// and keeps a longer one. The last judgement counts.
func (s *suite) anyInterval(ctx context.Context, hs []hold, judge func(*held) (detail string, few bool, err error)) (detail string, err error) {
	for _, h := range hs {
		few := false
		if err = s.hold(ctx, h, func(t *held) (err error) {
			detail, few, err = judge(t)
			return err
		}); !few {
			break
		}
	}
	return detail, err
}

// share checks that at least half of the samples came that a transfer wants.
func (t *held) share() (detail string, few bool, err error) {
	var counts [2]int
	interval := time.Duration(t.p.SampleIntervalMS) * time.Millisecond
	for i, d := range []*proc{t.c, t.srv} {
		n, err := sampled(d, t.p.Transfer.ID, interval)
		if err != nil {
			return "", false, err
		}
		elapsed := time.Duration(d.find(about(contract.KindResult, t.p.Transfer.ID)).Result.ElapsedNS)
		if want := mostSamples(elapsed, interval); n-1 < want/2 {
			return "", true, fmt.Errorf("%s: %d samples before the final one in %s at an interval of %s, expected %d, or half of them on a busy machine; they come until the transfer has ended, also while only the answer is awaited",
				d.name, n-1, elapsed.Round(time.Millisecond), interval, want)
		}
		counts[i] = n
	}
	return fmt.Sprintf("%d of the client and %d of the server, every %s", counts[0], counts[1], interval), false, nil
}

// doublingLoss has the link lose one packet of so many, so that the counters count.
const doublingLoss = 20

// checkSampleInterval looks at transfers of more than 500 samples: 500 in the
// first second, 250 in the next, then 125 a second.
func checkSampleInterval(ctx context.Context, s *suite) (string, error) {
	return s.anyInterval(ctx, []hold{
		{lasts: 3200 * time.Millisecond, intervalMS: 2, loseEach: doublingLoss},
		{lasts: 5 * time.Second, intervalMS: 8, loseEach: doublingLoss},
		{lasts: 10 * time.Second, intervalMS: 25, loseEach: doublingLoss},
	}, (*held).doubling)
}

// doubling checks the distances of samples from both sides. Where they are too
// long, few says so: the machine may have been too busy.
func (t *held) doubling() (detail string, few bool, err error) {
	interval := time.Duration(t.p.SampleIntervalMS) * time.Millisecond
	var counts [2]int
	for i, d := range []*proc{t.c, t.srv} {
		if counts[i], err = sampled(d, t.p.Transfer.ID, interval); err != nil {
			return "", false, err
		}
	}
	for _, d := range []*proc{t.c, t.srv} {
		if err := dense(d.name, d.all(about(contract.KindSample, t.p.Transfer.ID)), interval); err != nil {
			return "", true, err
		}
	}
	detail = fmt.Sprintf("%d of the client and %d of the server in %s", counts[0], counts[1], time.Duration(t.client.ElapsedNS).Round(time.Millisecond))
	if again := t.client.Final.Retransmits; again != nil {
		detail += fmt.Sprintf(", %d retransmissions", *again)
		if b := t.client.Final.RetransmittedBytes; b != nil {
			detail += fmt.Sprintf(" of %d bytes", *b)
		}
	}
	if min(counts[0], counts[1]) < samplesFull+spacedOver {
		detail += "; this machine was too busy to see the interval double"
	}
	return detail, false, nil
}

// Of these samples (by their number) the interval is still the given one, and
// most follow the one before after that time, if the machine lets them.
const (
	denseFrom  = 150
	denseShare = 0.1
)

// dense checks that the interval has not become longer before its time.
func dense(who string, es []seen, interval time.Duration) error {
	es = es[min(denseFrom, len(es)):min(samplesFull-1, len(es))]
	near := 0
	for i := range es[min(1, len(es)):] {
		if time.Duration(es[i+1].Sample.ElapsedNS-es[i].Sample.ElapsedNS) < interval*3/2 {
			near++
		}
	}
	if len(es) > 2*spacedOver && float64(near) < denseShare*float64(len(es)) {
		return fmt.Errorf("%s: of the samples %d to %d, %d follow the one before after an interval of %s, the others later; expected all, on a machine that is not too busy: the interval doubles after %d samples, not before",
			who, denseFrom+1, denseFrom+len(es), near, interval, samplesFull)
	}
	return nil
}
