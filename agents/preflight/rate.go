package preflight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
	"linktrial/internal/unit"
)

// Bounds of the rate probe: a train of packets as large as the path takes, each
// of which comes back.
const (
	maxTrain     = 32              // packets: 48 KB each way at 1500 bytes
	minTrain     = 4               // fewer give no rate
	maxTrainTime = 5 * time.Second // for which the train may occupy the radio
	maxTrains    = 3               // at most, where the first looks slow
)

func newRateCheck() *linktrialv1.Check {
	return &linktrialv1.Check{Kind: checkkind.Rate.Name, Expected: "packets pass at a rate that fits the radio's",
		Meaning: "trials take far longer than planned, and some reach their limits",
		Remedy:  "see antennas, power and distance, whether somebody else transmits, and that the radio's configuration is the one of its profile; where the link is meant to be that bad, start the run anyway"}
}

// checkRate sends a short train of packets of the size that passes, and times what
// comes back. small is the round trip of small probes; radio the rate of the
// radio in bit/s, 0 where it is not known.
func (c Config) checkRate(ctx context.Context, ping *pinger, check *linktrialv1.Check, bytes int, small time.Duration, radio float64) {
	one, err := ping.roundTrip(ctx, bytes, min(max(time.Duration(float64(small)*float64(bytes)/probeBytes), 2*time.Second), 20*time.Second))
	if err != nil {
		check.State, check.Found = unknown, "no large packet came back in time: "+err.Error()
		return
	}
	// What a large packet takes longer than a small one is its airtime, there and back.
	airtime := max(one-small, time.Microsecond) * time.Duration(bytes) / time.Duration(max(1, bytes-probeBytes))
	n := min(maxTrain, int(maxTrainTime/airtime))
	if n < minTrain {
		check.State = notChecked
		check.Found = fmt.Sprintf("skipped: a packet of %d bytes takes %s there and back, so that even %d of them would hold the radio for %s",
			bytes, formatDuration(airtime), minTrain, formatDuration(minTrain*airtime))
		return
	}
	cost := fmt.Sprintf("%d packets of %d bytes each way", n, bytes)
	var rate float64
	var answers int
	var took time.Duration
	// A node that was busy for a moment reads its answers late: what looks slow is
	// measured again, and the best counts.
	for try := 0; try < maxTrains && (try == 0 || rate < max(radio*checkkind.MinRateShare, 1)); try++ {
		came, in, err := ping.train(ctx, bytes, n, max(2*time.Second, 4*one+2*time.Duration(n)*airtime))
		// All packets but the first waited for airtime alone; the first one's path there
		// and back is in the time once.
		busy := in - (one - airtime)
		if err != nil || came < 2 || busy <= 0 {
			answers = max(answers, came)
			continue
		}
		if r := float64(came) * float64(bytes) * 8 / busy.Seconds(); r > rate {
			rate, answers, took = r, came, in
		}
	}
	if rate == 0 {
		check.State, check.Found = warning, fmt.Sprintf("%d of a train of %s came back", answers, cost)
		return
	}
	check.State, check.Found = ok, fmt.Sprintf("about %s there and, at the same time, as much back (%s, %d answered, %s)", unit.FormatRate(rate), cost, answers, formatDuration(took))
	if radio > 0 {
		check.Expected = fmt.Sprintf("at least %s, a twentieth of the radio's %s", unit.FormatRate(radio*checkkind.MinRateShare), unit.FormatRate(radio))
		if rate < radio*checkkind.MinRateShare {
			check.State = warning
		}
	}
}

var errNoAnswer = errors.New("no answer came")

// roundTrip is that of one of three packets of the size.
func (p *pinger) roundTrip(ctx context.Context, bytes int, patience time.Duration) (time.Duration, error) {
	for range 3 {
		began := time.Now()
		seq, err := p.send(bytes)
		if err != nil {
			return 0, err
		}
		for {
			got, err := p.receive(ctx, began.Add(patience))
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			if err == nil && got == seq {
				return time.Since(began), nil
			}
			if err == nil && got < 0 {
				break
			}
		}
	}
	return 0, errNoAnswer
}

// train sends packets one right after the other and returns how many came back,
// and the time from the first one's leaving to the last answer.
func (p *pinger) train(ctx context.Context, bytes, n int, patience time.Duration) (answers int, took time.Duration, err error) {
	began := time.Now()
	mine := map[int]bool{}
	for range n {
		seq, err := p.send(bytes)
		if errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EAGAIN) {
			continue // the interface's own queue is full: one packet fewer
		}
		if err != nil {
			return 0, 0, err
		}
		mine[seq] = true
	}
	until := time.Now().Add(patience)
	for len(mine) > 0 {
		seq, err := p.receive(ctx, until)
		if ctx.Err() != nil || err == nil && seq < 0 {
			break
		}
		if err != nil || !mine[seq] {
			continue // an error about an earlier probe
		}
		delete(mine, seq)
		answers, took = answers+1, time.Since(began)
	}
	return answers, took, nil
}
