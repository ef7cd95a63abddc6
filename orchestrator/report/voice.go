package report

import (
	"linktrial/internal/stats"
	"linktrial/protocols/probe/pattern"
)

// codecs are those of the patterns that are speech.
var codecs = map[string]stats.Codec{pattern.G711: stats.G711, pattern.G729: stats.G729A}

// VoiceNote says how the quality of voice is found.
const VoiceNote = "MOS: quality of voice by the E-model (ITU-T G.107, 1 to 4.4), with the fixed de-jitter buffer that suits the delays best."

// Voice is the quality of the speech that a probe was, by the E-model; nil: it was none,
// or its delays are not known: no percentiles, or clocks that were not compared.
func (r *Run) Voice(p *Probe) *stats.Voice {
	t := r.Sheet.Treatment(p.Treatment)
	if t == nil || !p.Counts() || p.Metrics.Delay == nil || p.Metrics.Delay.PercentilesNS == nil || r.ProbeClock.Unknown != "" {
		return nil
	}
	name, _ := t.Options["pattern"].(string)
	codec, speech := codecs[name]
	if !speech {
		return nil
	}
	m := p.Metrics
	call := stats.Call{Percentiles: r.ProbeClock.Of(p.From).Correct(m.Delay).Percentiles, Loss: float64(m.Lost) / float64(m.Sent)}
	if m.LossBursts > 0 {
		call.MeanBurst = float64(m.Lost) / float64(m.LossBursts)
	}
	v := codec.Quality(call)
	return &v
}
