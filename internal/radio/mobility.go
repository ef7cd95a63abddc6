package radio

import (
	"fmt"
	"math"
	"time"
)

// Mobility gives a link's conditions by the distance between its ends, or by
// the signal-to-noise ratio that follows from it:
//
//	SNR(d) = ReferenceSNR − 10 · Exponent · log10(d / ReferenceMetres)
//
// the log-distance path loss model. The topology says where the stations move, and how fast.
type Mobility struct {
	Step            time.Duration `json:"step_ns"`            // of the resulting trace
	Exponent        float64       `json:"exponent,omitempty"` // 2 in free space
	ReferenceMetres float64       `json:"reference_metres,omitempty"`
	ReferenceSNR    float64       `json:"reference_snr_db,omitempty"`
	// Levels from the best conditions to the worst; the first that applies
	// holds, and beyond the last every packet is lost.
	Levels []Level `json:"levels"`
}

// Level is a rate and a loss that hold up to a distance, or down to an SNR.
type Level struct {
	UpToMetres        float64  `json:"up_to_metres,omitempty"`
	MinSNR            *float64 `json:"min_snr_db,omitempty"` // where set, instead of the distance
	RateBitsPerSecond float64  `json:"rate_bits_per_second"`
	Loss              float64  `json:"loss"`
}

// SNR is the signal-to-noise ratio in dB at a distance of more than 0.
func (m *Mobility) SNR(metres float64) float64 {
	return m.ReferenceSNR - 10*m.Exponent*math.Log10(math.Max(metres, 1e-3)/m.ReferenceMetres)
}

// Conditions are rate and loss at a distance. Out of reach the last level's
// rate is kept and everything is lost: a radio goes on transmitting.
func (m *Mobility) Conditions(metres float64) (bitsPerSecond, loss float64) {
	for _, l := range m.Levels {
		if l.MinSNR != nil && m.SNR(metres) >= *l.MinSNR || l.MinSNR == nil && metres <= l.UpToMetres {
			return l.RateBitsPerSecond, l.Loss
		}
	}
	return m.Levels[len(m.Levels)-1].RateBitsPerSecond, 1
}

// Moves is the way of a station that moves: from its position at the trial's
// start along the waypoints at a constant speed, where it stays, or turns
// round and goes back and forth for ever.
type Moves struct {
	SpeedMetresPerSecond float64    `json:"speed_metres_per_second"`
	Waypoints            []Waypoint `json:"waypoints"`
	Return               bool       `json:"return,omitempty"`
}

// Waypoint is a position, in degrees north and east.
type Waypoint struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// legs is the length of each leg of the station's way.
func (s *Station) legs() (metres []float64, total float64) {
	if s.Moves == nil {
		return nil, 0
	}
	at := *s
	for _, w := range s.Moves.Waypoints {
		next := Station{Latitude: w.Latitude, Longitude: w.Longitude}
		d := at.DistanceMetres(&next)
		metres, total = append(metres, d), total+d
		at = next
	}
	return metres, total
}

// At is the station with its position at a time after the trial's start.
func (s *Station) At(at time.Duration) Station {
	legs, total := s.legs()
	out := *s
	if total == 0 {
		return out
	}
	gone := s.Moves.SpeedMetresPerSecond * at.Seconds()
	if s.Moves.Return {
		if gone = math.Mod(gone, 2*total); gone > total {
			gone = 2*total - gone
		}
	}
	from := Waypoint{s.Latitude, s.Longitude}
	for i, w := range s.Moves.Waypoints {
		if gone <= legs[i] && legs[i] > 0 {
			part := gone / legs[i]
			// Over the length of a leg a straight line in degrees is close enough to one on the ground.
			out.Latitude = from.Latitude + part*(w.Latitude-from.Latitude)
			out.Longitude = from.Longitude + part*(w.Longitude-from.Longitude)
			return out
		}
		gone -= legs[i]
		from = w
	}
	out.Latitude, out.Longitude = from.Latitude, from.Longitude
	return out
}

// journey is how long the station's way takes, there and back where it returns.
func (s *Station) journey() time.Duration {
	_, total := s.legs()
	if total == 0 {
		return 0
	}
	if s.Moves.Return {
		total *= 2
	}
	return time.Duration(total / s.Moves.SpeedMetresPerSecond * 1e9)
}

// maxTraceSteps keeps a trace, which travels in the run sheet, within a few hundred KB.
const maxTraceSteps = 20_000

// follow is the trace of a link whose ends may move.
func (m *Mobility) follow(a, b *Station) (*Trace, error) {
	length, returns := max(a.journey(), b.journey()), false
	if length > 0 {
		moving, other := a, b
		if a.journey() == 0 {
			moving, other = b, a
		}
		returns = moving.Moves.Return
		if other.journey() > 0 && (returns || other.Moves.Return) && (other.Moves.Return != returns || other.journey() != moving.journey()) {
			return nil, fmt.Errorf("stations %s and %s move in rounds of different length, whose distance never repeats", a.Name, b.Name)
		}
	}
	n := int64(1)
	if length > 0 {
		n = int64((length + m.Step - 1) / m.Step)
		if !returns {
			n++ // the place where it stays
		}
	}
	if n > maxTraceSteps {
		return nil, fmt.Errorf("the way between %s and %s takes %s, more than %d steps of %s", a.Name, b.Name, length.Round(time.Second), maxTraceSteps, m.Step)
	}
	t := &Trace{Step: m.Step, Repeat: returns}
	for i := range n {
		at := time.Duration(i) * m.Step
		pa, pb := a.At(at), b.At(at)
		rate, loss := m.Conditions(pa.DistanceMetres(&pb))
		t.RateBitsPerSecond, t.Loss = append(t.RateBitsPerSecond, rate), append(t.Loss, loss)
	}
	return t, nil
}
