package live

import (
	"slices"

	"linktrial/orchestrator/ingest"
)

// maxSamples bounds the samples of one run that are kept for those who watch:
// four flows at ten samples a second for almost seven minutes.
const maxSamples = 16 << 10

// recentSamples is the newest samples of one run. Whoever reads too slowly
// misses the oldest; the store has them all.
type recentSamples struct {
	batches []ingest.Samples
	first   int64 // number of the first batch that is kept
	samples int
}

func (r *recentSamples) add(batches []ingest.Samples) {
	for _, b := range batches {
		r.batches = append(r.batches, b)
		r.samples += len(b.Samples)
	}
	drop := 0
	for r.samples > maxSamples && drop < len(r.batches)-1 {
		r.samples -= len(r.batches[drop].Samples)
		drop++
	}
	if drop > 0 {
		r.batches = slices.Clone(r.batches[drop:]) // so that the dropped ones can be freed
		r.first += int64(drop)
	}
}

func (r *recentSamples) since(from int64) ([]ingest.Samples, int64) {
	if r.batches == nil {
		return nil, from
	}
	next := r.first + int64(len(r.batches))
	skip := max(0, from-r.first)
	if from > next {
		skip = 0 // the reader has the number from an engine that was started before this one
	}
	return slices.Clone(r.batches[skip:]), next
}
