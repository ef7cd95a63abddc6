package stats

import "math"

// NormalisedThroughput is the share of the channel's bandwidth that payload
// took (decola-2006, section V): throughput in bytes per second over bandwidth
// in bits per second. NaN without a bandwidth.
func NormalisedThroughput(bytesPerSecond, bandwidthBitsPerSecond float64) float64 {
	if !(bandwidthBitsPerSecond > 0) {
		return math.NaN()
	}
	return 8 * bytesPerSecond / bandwidthBitsPerSecond
}

// GainPercent is how much less time a transfer took than the reference's, in
// percent of the reference's (decola-2006): 100·(T_ref − T)/T_ref. NaN without
// a reference time.
//
// The paper calls T "the end-to-end service delay" and does not state whether connecting is
// included. Its published throughputs show that it is not: those of its newRTO, 0.52 for 500
// kbytes and 0.61 for 1 Mbytes at 1 Mbit/s, lie on T = 2.3 s + size / 0.74 Mbit/s; with a
// delay of 1 s a transfer alone takes 2 s beyond its data, with a handshake before it 4 s.
func GainPercent(reference, value float64) float64 {
	if !(reference > 0) {
		return math.NaN()
	}
	return 100 * (reference - value) / reference
}

// DeviationPercent is how far a value is from a published one, in percent of
// the published one; positive where it is larger. NaN beside a published 0.
func DeviationPercent(published, value float64) float64 {
	if published == 0 {
		return math.NaN()
	}
	return 100 * (value - published) / published
}

// ShareOfBound is the time that a bound, Ideal or the coded bound, needed over
// the time the protocol needed, on the same channel realisation and from the
// same moment. NaN where either is not known.
func ShareOfBound(bound, elapsed float64) float64 {
	if !(bound > 0) || !(elapsed > 0) {
		return math.NaN()
	}
	return bound / elapsed
}

// Jain is the fairness index of the flows' shares (Jain, Chiu and Hawe 1984):
// (Σx)²/(n·Σx²), from 1/n where one flow has all to 1 where all are equal. NaN
// without flows, where no flow has anything, or where a share is negative.
func Jain(xs []float64) float64 {
	largest := 0.0
	for _, x := range xs {
		if !(x >= 0) || math.IsInf(x, 0) {
			return math.NaN()
		}
		largest = max(largest, x)
	}
	if largest == 0 {
		return math.NaN()
	}
	var sum, squares float64
	for _, x := range xs {
		x /= largest // the index has no unit; squares of large values would overflow
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(xs)) * squares)
}
