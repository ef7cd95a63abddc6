package ideal

import (
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// OfBoth is [Compute] for nodes with two radios, whose sender divides the flow between
// them so that both end at the same time; the seeds are those of the two realisations.
// Where there is one radio it is Compute.
func OfBoth(n *radio.Network, seeds [2]uint64, flow radiocontrol.Flow, horizon time.Duration, cancelled func() bool) (Times, error) {
	whole, err := Compute(n, seeds[0], flow, horizon, cancelled)
	if err != nil || n.Second == nil || flow.SizeBytes <= 0 {
		return whole, err
	}
	other, err := Compute(n.Second, seeds[1], flow, horizon, cancelled)
	if err != nil {
		return Times{}, err
	}
	d := division{first: n, seeds: seeds, flow: flow, horizon: horizon, cancelled: cancelled, known: map[int64][2]Times{0: {{}, other}, flow.SizeBytes: {whole, {}}}}
	var out Times
	if out.Ideal, err = d.best(func(t Times) time.Duration { return t.Ideal }); err != nil {
		return Times{}, err
	}
	out.Coded, err = d.best(func(t Times) time.Duration { return t.Coded })
	return out, err
}

// division is a flow over two radios.
type division struct {
	first     *radio.Network
	seeds     [2]uint64
	flow      radiocontrol.Flow
	horizon   time.Duration
	cancelled func() bool
	known     map[int64][2]Times // by how many bytes the first radio carries
}

// best is the shortest time in which both radios have carried their part: the first
// needs longer with every byte that it takes over, the second shorter.
func (d *division) best(of func(Times) time.Duration) (time.Duration, error) {
	shortest := time.Duration(0)
	low, high := int64(0), d.flow.SizeBytes
	step := int64(d.first.MTUBytes)
	for tries := 0; tries < 24; tries++ {
		at := []int64{0, d.flow.SizeBytes, low + (high-low)/2}[min(tries, 2)]
		both, err := d.times(at)
		if err != nil {
			return 0, err
		}
		one, two := of(both[0]), of(both[1])
		// 0 is a part that never arrives, unless there is none.
		never, neverTwo := one == 0 && at > 0, two == 0 && at < d.flow.SizeBytes
		if longer := max(one, two); !never && !neverTwo && (shortest == 0 || longer < shortest) {
			shortest = longer
		}
		if tries < 2 {
			continue
		}
		if never || !neverTwo && one > two {
			high = at
		} else {
			low = at
		}
		if high-low < step {
			break
		}
	}
	return shortest, nil
}

func (d *division) times(at int64) ([2]Times, error) {
	if t, ok := d.known[at]; ok {
		return t, nil
	}
	part := d.flow
	part.SizeBytes = at
	one, err := Compute(d.first, d.seeds[0], part, d.horizon, d.cancelled)
	if err != nil {
		return [2]Times{}, err
	}
	part.SizeBytes = d.flow.SizeBytes - at
	two, err := Compute(d.first.Second, d.seeds[1], part, d.horizon, d.cancelled)
	d.known[at] = [2]Times{one, two}
	return d.known[at], err
}
