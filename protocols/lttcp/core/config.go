package core

import (
	"errors"
	"fmt"
	"io"
)

// Bounds of a configuration, and what its zero values mean.
const (
	LeastSegment = 200  // MSSmin of lttcp-2006, section II
	MostSegment  = 1500 // MSSmax
	Granularity  = 10   // G: packets that a window has at least

	MinBuffer     = 16 << 10
	MaxBuffer     = 1 << 30
	DefaultBuffer = 1 << 20
	// LongestSegment is the longest that an option may ask for.
	LongestSegment = 8900
)

// Config says what an end does.
type Config struct {
	// MSS is the segment in bytes of payload that the window counts in: it grows by
	// one a round trip and begins again with one after a timeout. It is the length
	// of segments where they are not adapted. 0: the longest.
	MSS int
	// Segment is the longest segment in bytes of payload; 0: 1500.
	Segment int
	// Least is the shortest that adaptation makes; 0: 200.
	Least int
	// Granularity is how many packets a window is to have at least; 0: 10.
	Granularity int
	// Buffer is how many bytes may wait to be put in order or to be read; 0: 1 MiB.
	Buffer int

	// FixedSegment leaves out the adaptive segment size, NoProactive and NoReactive
	// the two kinds of FEC.
	FixedSegment, NoProactive, NoReactive bool
	// LossResponse halves the window on losses, too, as TCP does; else ECN alone does.
	LossResponse bool

	// Random makes tokens.
	Random io.Reader
}

func (c Config) withDefaults() (Config, error) {
	set := func(to *int, v int) {
		if *to == 0 {
			*to = v
		}
	}
	set(&c.Segment, MostSegment)
	set(&c.Least, min(LeastSegment, c.Segment))
	set(&c.MSS, c.Segment)
	set(&c.Granularity, Granularity)
	set(&c.Buffer, DefaultBuffer)
	switch {
	case c.Random == nil:
		return c, errors.New("no source of random numbers")
	case c.Segment < 64 || c.Segment > LongestSegment:
		return c, fmt.Errorf("the longest segment is %d bytes, expected 64 to %d", c.Segment, LongestSegment)
	case c.MSS < 64 || c.MSS > c.Segment:
		return c, fmt.Errorf("the segment of the window is %d bytes, expected 64 to %d (the longest)", c.MSS, c.Segment)
	case c.Least < 16 || c.Least > c.Segment:
		return c, fmt.Errorf("the shortest segment is %d bytes, expected 16 to %d (the longest)", c.Least, c.Segment)
	case c.Granularity < 1 || c.Granularity > 100:
		return c, fmt.Errorf("the granularity is %d packets, expected 1 to 100", c.Granularity)
	case c.Buffer < MinBuffer || c.Buffer > MaxBuffer:
		return c, fmt.Errorf("the receive buffer is %d bytes, expected %d to %d", c.Buffer, MinBuffer, MaxBuffer)
	}
	return c, nil
}
