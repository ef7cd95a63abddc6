package live

import "time"

// throughputOver is the time over which the newest throughput of a flow is taken.
const throughputOver = 2 * time.Second

// Throughput returns the newest throughput of an attempt in bytes per second: what each
// flow carried over its newest two seconds, all flows together. A flow that has ended
// counts until the attempt has. False: less than two samples of the attempt are known.
func (s *Runs) Throughput(id string, trial, attempt int) (float64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		return 0, false
	}
	return r.samples.throughput(trial, attempt)
}

// point is the state of a flow at one sample.
type point struct {
	elapsed time.Duration
	bytes   int64 // acknowledged where the protocol knows, else sent
}

// throughput reads the kept samples of the attempt from the newest back; its batches follow
// one another.
func (r *recentSamples) throughput(trial, attempt int) (sum float64, known bool) {
	newest, oldest := map[int]point{}, map[int]point{}
	for i := len(r.batches) - 1; i >= 0; i-- {
		b := &r.batches[i]
		if b.Trial != trial || b.Attempt != attempt {
			break
		}
		for k := len(b.Samples) - 1; k >= 0; k-- {
			x := &b.Samples[k]
			p := point{time.Duration(x.ElapsedNS), x.SentBytes}
			if x.AckedBytes != nil {
				p.bytes = *x.AckedBytes
			}
			last, found := newest[b.Flow]
			switch {
			case !found:
				newest[b.Flow], oldest[b.Flow] = p, p
			case last.elapsed-oldest[b.Flow].elapsed < throughputOver:
				oldest[b.Flow] = p
			}
		}
	}
	for flow, last := range newest {
		first := oldest[flow]
		if took := last.elapsed - first.elapsed; took > 0 {
			sum, known = sum+float64(last.bytes-first.bytes)/took.Seconds(), true
		}
	}
	return sum, known
}
