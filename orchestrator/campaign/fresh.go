package campaign

import "linktrial/orchestrator/ingest"

// freshMax bounds the samples of one run that are kept for those who watch:
// four flows at ten samples a second for almost seven minutes.
const freshMax = 16 << 10

// fresh is the newest samples of one run. Who reads too slowly misses the
// oldest; the store has them all.
type fresh struct {
	batches []ingest.Samples
	first   int64 // number of the first batch that is kept
	samples int
}

func (f *fresh) add(batches []ingest.Samples) {
	for _, b := range batches {
		f.batches = append(f.batches, b)
		f.samples += len(b.Samples)
	}
	drop := 0
	for f.samples > freshMax && drop < len(f.batches)-1 {
		f.samples -= len(f.batches[drop].Samples)
		drop++
	}
	if drop > 0 {
		f.batches = append([]ingest.Samples(nil), f.batches[drop:]...) // what is dropped is let go
		f.first += int64(drop)
	}
}

// Fresh returns the samples of a run that came since the batch numbered from,
// as far as they are kept, and the number to go on with. The samples are
// shared and must not be changed.
func (e *Engine) Fresh(run string, from int64) ([]ingest.Samples, int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.fresh[run]
	if f == nil {
		return nil, from
	}
	next := f.first + int64(len(f.batches))
	skip := max(0, from-f.first)
	if from > next {
		skip = 0 // of an engine that was started again
	}
	return append([]ingest.Samples(nil), f.batches[min(skip, int64(len(f.batches))):]...), next
}
