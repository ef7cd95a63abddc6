//go:build kernels

package inside

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// What is brought along and is also the kernel's is compared over the same
// realisations of a channel. Both are the same algorithm, but the kernel counts
// some times in ticks of 4 ms, so that transfers take other courses.
var (
	compared          = []string{"westwood", "veno"}
	comparedOver      = conditions{bitsPerSecond: 512e3, delay: 50 * time.Millisecond, loss: 0.02}
	comparedBytes     = int64(256 << 10)
	realisations      = 6
	comparedTolerance = 0.05 // of the mean, beyond the interval of the difference
)

// measure carries a payload over every realisation with each of the congestion
// controls, and returns the seconds.
func measure(t *testing.T, origin string) map[string][]float64 {
	t.Helper()
	out := map[string][]float64{}
	for _, name := range compared {
		t.Run(fmt.Sprintf("%s, %s", name, origin), func(t *testing.T) {
			w := emulated(t, comparedOver)
			options := map[string]any{"congestion": name}
			server, err := serve(w, "tcp", options)
			if err != nil {
				t.Fatal(err)
			}
			defer server.stop()
			for i := range realisations {
				r, err := transfer(t.Context(), w, server, "tcp", options, comparedBytes, uint64(i+1))
				if err == nil {
					err = origins(r, name, origin)
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("realisation %d: %.2f s", i+1, seconds(r.ElapsedNS))
				out[name] = append(out[name], seconds(r.ElapsedNS))
			}
		})
	}
	return out
}

// hold reports a row for each, and holds one mean against the other.
func hold(t *testing.T, ours, kernels map[string][]float64) {
	t.Helper()
	for _, name := range compared {
		try(t, "westwood", name, func(t *testing.T) ([]string, error) {
			a, b := ours[name], kernels[name]
			if len(a) != realisations || len(b) != realisations {
				return nil, fmt.Errorf("%d and %d of %d transfers were measured", len(a), len(b), realisations)
			}
			t.Logf("eBPF %.2f", a)
			t.Logf("kernel %.2f", b)
			differences := make([]float64, realisations)
			for i := range differences {
				differences[i] = a[i] - b[i]
			}
			meanA, _ := moments(a)
			meanB, _ := moments(b)
			mean, deviation := moments(differences)
			half := student * deviation / math.Sqrt(float64(realisations))
			values := []string{fmt.Sprintf("%.2f", meanA), fmt.Sprintf("%.2f", meanB), fmt.Sprintf("%+.1f %% ± %.1f %%", mean/meanB*100, half/meanB*100)}
			if tolerated := half + comparedTolerance*meanB; math.Abs(mean) > tolerated {
				return values, fmt.Errorf("the means differ by %+.2f s, at most %.2f s is tolerated", mean, tolerated)
			}
			return values, nil
		})
	}
}

// student is the 97.5 % quantile of Student's t with 5 degrees of freedom.
const student = 2.571

// moments are mean and standard deviation.
func moments(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return mean, math.Sqrt(deviation)
}
