package radio

import (
	"errors"
	"fmt"
	"math"
)

// Stationary is the long-run share of bits in each state.
func (h *HiddenMarkov) Stationary() ([]float64, error) {
	n := len(h.Transition)
	// π·(P − I) = 0 with Σπ = 1 in place of one of its equations, which are
	// linearly dependent; Gaussian elimination with pivots.
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n+1)
		for j := range n {
			m[i][j] = h.Transition[j][i]
			if i == j {
				m[i][j]--
			}
		}
	}
	for j := range n + 1 {
		m[n-1][j] = 1
	}
	for c := range n {
		p := c
		for r := c + 1; r < n; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[p][c]) {
				p = r
			}
		}
		if math.Abs(m[p][c]) < 1e-14 {
			return nil, errors.New("the chain has no single long-run distribution: some states never reach the others")
		}
		m[c], m[p] = m[p], m[c]
		for r := range n {
			if r == c || m[r][c] == 0 {
				continue
			}
			f := m[r][c] / m[c][c]
			for j := c; j <= n; j++ {
				m[r][j] -= f * m[c][j]
			}
		}
	}
	out := make([]float64, n)
	for i := range n {
		out[i] = max(0, m[i][n]/m[i][i])
	}
	return out, nil
}

// MeanBER is the long-run share of wrong bits.
func (h *HiddenMarkov) MeanBER() (float64, error) {
	pi, err := h.Stationary()
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for i, p := range pi {
		sum += p * h.BitErrorRates[i]
	}
	return sum, nil
}

// WithBER is the model with all bit error rates scaled so that their mean is
// the target: the states keep their relation, and the chain, which holds the
// correlation of errors, stays as it is.
func (h *HiddenMarkov) WithBER(target float64) (*HiddenMarkov, error) {
	mean, err := h.MeanBER()
	if err != nil {
		return nil, err
	}
	if mean <= 0 {
		return nil, errors.New("no state that is ever visited has bit errors, so none can be fitted")
	}
	out := &HiddenMarkov{Transition: h.Transition, BitErrorRates: make([]float64, len(h.BitErrorRates))}
	for i, e := range h.BitErrorRates {
		if out.BitErrorRates[i] = e / mean * target; out.BitErrorRates[i] > 1 {
			return nil, fmt.Errorf("a mean bit error rate of %g would need %.3g in state %d; the most that this chain gives is %.3g", target, out.BitErrorRates[i], i+1, target/out.BitErrorRates[i])
		}
	}
	return out, nil
}

// LossOf is the probability that a run of so many bits, begun at any moment of
// the long run, has a wrong one: 1 − π·(D·P)^(n−1)·D·1 with D the diagonal of 1 − BER.
func (h *HiddenMarkov) LossOf(bits int) float64 {
	pi, err := h.Stationary()
	if err != nil || bits <= 0 {
		return 0
	}
	n := len(pi)
	step := make([][]float64, n)
	for i := range n {
		step[i] = make([]float64, n)
		for j := range n {
			step[i][j] = (1 - h.BitErrorRates[i]) * h.Transition[i][j]
		}
	}
	v := pi
	for k := bits; k > 0; k >>= 1 {
		if k&1 == 1 {
			w := make([]float64, n)
			for i := range n {
				for j := range n {
					w[j] += v[i] * step[i][j]
				}
			}
			v = w
		}
		step = square(step)
	}
	right := 0.0
	for _, x := range v {
		right += x // the rows of P sum to one, so the step after the last bit changes nothing
	}
	return min(1, max(0, 1-right))
}

func square(m [][]float64) [][]float64 {
	out := make([][]float64, len(m))
	for i := range m {
		out[i] = make([]float64, len(m))
		for k := range m {
			for j := range m {
				out[i][j] += m[i][k] * m[k][j]
			}
		}
	}
	return out
}
