package stats

import (
	"math"
	"time"
)

// Codec is what the E-model (ITU-T G.107) knows of a codec.
type Codec struct {
	// Ie is its equipment impairment without loss, and Bpl how robust it is against
	// losses (ITU-T G.113, appendix I).
	Ie, Bpl float64
	// Own is the delay that it adds: a packet of speech, and what it looks ahead.
	Own time.Duration
}

// Codecs with packets of 20 ms.
var (
	// G711 conceals losses by its appendix I: Bpl without it is 4.3.
	G711 = Codec{Ie: 0, Bpl: 25.1, Own: 20 * time.Millisecond}
	// G729A is with voice activity detection; it looks ahead 5 ms.
	G729A = Codec{Ie: 11, Bpl: 19, Own: 25 * time.Millisecond}
)

// Call is what one direction of a call met.
type Call struct {
	// Percentiles are those of the one-way delay from 0 to 100 in milliseconds, of the
	// packets that arrived.
	Percentiles []float64
	Loss        float64 // share of the packets that did not arrive
	MeanBurst   float64 // packets in a run of lost ones; 0: none was lost
}

// Voice is the quality of a call by the E-model.
type Voice struct {
	R   float64 // transmission rating factor, at most 93.2
	MOS float64 // 1 to 4.41
	// PlayoutMS is the delay of the de-jitter buffer's end: packets that come later are lost.
	PlayoutMS float64
}

// Quality is that of a call with the fixed de-jitter buffer that gives the highest rating:
// its end is one of the percentiles of the delay, and what comes later counts as lost.
// A buffer that does not know the delays beforehand gives at most this.
func (c Codec) Quality(x Call) Voice {
	if len(x.Percentiles) == 0 {
		return Voice{math.NaN(), math.NaN(), math.NaN()}
	}
	best := Voice{R: math.Inf(-1)}
	last := len(x.Percentiles) - 1
	for percent, ms := range x.Percentiles {
		if percent < last && x.Percentiles[percent+1] == ms {
			continue // the next one has as much delay, and fewer come later
		}
		loss := x.Loss + (1-x.Loss)*float64(last-percent)/float64(max(last, 1))
		r := c.Rating(ms+float64(c.Own)/1e6, loss, burstRatio(x.Loss, x.MeanBurst))
		if r > best.R {
			best = Voice{R: r, PlayoutMS: ms}
		}
	}
	best.MOS = MOS(best.R)
	return best
}

// burstRatio is the mean length of the bursts of losses by that of independent losses,
// 1/(1 − loss) (G.107, section 7.2); shorter ones count as independent.
func burstRatio(loss, mean float64) float64 { return max(1, mean*(1-loss)) }

// Rating is the transmission rating factor R for a one-way delay from mouth to ear in
// milliseconds, a share of lost packets and a burst ratio, with the default values of
// G.107, table 2, for all else.
func (c Codec) Rating(delayMS, loss, burst float64) float64 {
	d := max(0, delayMS)
	percent := 100 * loss
	ro, no := signalToNoise()
	effective := c.Ie + (95-c.Ie)*percent/(percent/burst+c.Bpl)
	return ro - simultaneous(ro, no, d) - delayImpairment(ro, no, d) - effective
}

// Default values of G.107 (06/2015), table 2.
const (
	slr, rlr   = 8.0, 2.0 // loudness ratings of sending and receiving, dB
	stmr, lstr = 15.0, 18.0
	telr, wepl = 65.0, 110.0 // loudness of the talker's echo, loss of the listener's, dB
	nc, nfor   = -70.0, -64.0
	ps, pr, ds = 35.0, 35.0, 3.0
	mT         = 100.0 // ms of delay that nobody notices
)

func decibels(x float64) float64 { return math.Pow(10, x/10) }

// signalToNoise is Ro and the sum of noises No (section 7.2).
func signalToNoise() (ro, no float64) {
	olr := slr + rlr
	nos := ps - slr - ds - 100 + 0.004*(ps-olr-ds-14)*(ps-olr-ds-14)
	pre := pr + 10*math.Log10(1+decibels(10-lstr))
	nor := rlr - 121 + pre + 0.008*(pre-35)*(pre-35)
	no = 10 * math.Log10(decibels(nc)+decibels(nos)+decibels(nor)+decibels(nfor+rlr))
	return 15 - 1.5*(slr+no), no
}

// simultaneous is the impairment Is (section 7.3).
func simultaneous(ro, no, delay float64) float64 {
	x := (slr + rlr + 0.2*(64+no-rlr)) / 8
	iolr := 20 * (math.Pow(1+math.Pow(x, 8), 1.0/8) - x)
	s := sidetone(delay)
	ist := 12*math.Pow(1+math.Pow((s-13)/6, 8), 1.0/8) - 28*math.Pow(1+math.Pow((s+1)/19.4, 35), 1.0/35) -
		13*math.Pow(1+math.Pow((s-3)/33, 13), 1.0/13) + 29
	const q = 37.0 // one quantization distortion unit
	g := 1.07 + 0.258*q + 0.0602*q*q
	iq := 15 * math.Log10(1+math.Pow(10, (ro-100)/15+46/8.4-g/9)+math.Pow(10, 46.0/30-g/40))
	return iolr + ist + iq
}

func sidetone(delay float64) float64 {
	return -10 * math.Log10(decibels(-stmr)+math.Exp(-delay/4)*decibels(-telr))
}

// delayImpairment is Id (section 7.4): of echoes to talker and listener, and of the delay.
func delayImpairment(ro, no, delay float64) float64 {
	terv := telr - 40*math.Log10((1+delay/10)/(1+delay/150)) + 6*math.Exp(-0.3*delay*delay)
	roe, re := -1.5*(no-rlr), 80+2.5*(terv-14)
	talker := ((roe-re)/2 + math.Sqrt((roe-re)*(roe-re)/4+100) - 1) * (1 - math.Exp(-delay))
	rle := 10.5 * (wepl + 7) * math.Pow(2*delay+1, -0.25)
	listener := (ro-rle)/2 + math.Sqrt((ro-rle)*(ro-rle)/4+169)
	if delay <= mT {
		return talker + listener
	}
	x := math.Log2(delay / mT)
	six := func(x float64) float64 { return math.Pow(1+math.Pow(x, 6), 1.0/6) }
	return talker + listener + 25*(six(x)-3*six(x/3)+2)
}

// MOS is the mean opinion score of a rating (G.107, annex B).
func MOS(r float64) float64 {
	switch {
	case r <= 0:
		return 1
	case r >= 100:
		return 4.5
	}
	return max(1, 1+0.035*r+r*(r-60)*(100-r)*7e-6)
}
