package session

import (
	"testing"
	"time"
)

// link carries batches as a radio does: a round trip, and a rate.
type link struct {
	roundTrip      time.Duration
	bytesPerSecond float64
}

func (l link) takes(bytes int) time.Duration {
	return l.roundTrip + time.Duration(float64(bytes)/l.bytesPerSecond*float64(time.Second))
}

// A journal gets through windows over any link, and no batch is cut once the link is
// known: of what windows take, most is of use.
func TestPaceOverLinks(t *testing.T) {
	for _, tt := range []struct {
		name    string
		link    link
		window  time.Duration
		journal int
		cuts    int // at most
		windows int // at most
	}{
		{"2 Mbit/s", link{20 * time.Millisecond, 1e6}, 400 * time.Millisecond, 200 << 10, 0, 2},
		{"64 kbit/s", link{150 * time.Millisecond, 40e3}, time.Second, 200 << 10, 0, 12},
		{"16 kbit/s", link{400 * time.Millisecond, 10e3}, 3 * time.Second, 60 << 10, 0, 6},
		{"the first batch is too large", link{time.Second, 2e3}, 3 * time.Second, 20 << 10, 1, 12},
		{"a window is hardly a round trip", link{time.Second, 10e3}, 1200 * time.Millisecond, 2 << 10, 3, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pace{size: firstBatch, most: batchBytes}
			cuts, windows, left := 0, 0, tt.journal
			for ; left > 0 && windows < 100; windows++ {
				before := left
				for open := tt.window; left > 0; {
					size, fits := p.next(open)
					if !fits {
						break
					}
					size = min(size, left)
					took := tt.link.takes(size)
					if took > open {
						p.cut(size)
						cuts++
						break
					}
					p.stored(size, took)
					left -= size
					open -= took
				}
				if left == before { // the leading agent's next window is longer
					tt.window *= 2
				}
			}
			t.Logf("%d windows, %d cuts", windows, cuts)
			if left > 0 || cuts > tt.cuts || windows > tt.windows {
				t.Errorf("%d windows, %d cuts, %d bytes left; expected at most %d windows and %d cuts, and nothing left", windows, cuts, left, tt.windows, tt.cuts)
			}
		})
	}
}

// Where no window bounds it, a batch is what half of the limit carries, so that a slow
// link is no reason to send the same for ever.
func TestPaceWithoutWindows(t *testing.T) {
	p := pace{size: batchBytes, most: batchBytes}
	l := link{time.Second, 6e3}
	for range 20 {
		size, fits := p.next(deliverLimit)
		if !fits {
			t.Fatal("no batch fits")
		}
		if took := l.takes(size); took > deliverLimit {
			p.cut(size)
		} else {
			p.stored(size, took)
		}
	}
	if size, _ := p.next(deliverLimit); l.takes(size) > deliverLimit || size < 32<<10 {
		t.Errorf("a batch has %d bytes and takes %s of %s", size, l.takes(size), deliverLimit)
	}
	fast := pace{size: batchBytes, most: batchBytes}
	fast.stored(300, time.Millisecond)
	if size, _ := fast.next(deliverLimit); size != batchBytes {
		t.Errorf("a batch of %d bytes over a fast link, expected %d", size, batchBytes)
	}
}
