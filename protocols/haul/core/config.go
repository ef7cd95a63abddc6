package core

import (
	"errors"
	"fmt"
	"io"
	"time"

	"linktrial/protocols/haul/secure"
)

// Bounds of a configuration.
const (
	MinPacket     = 256  // bytes of UDP payload
	MaxPacket     = 8972 // of a path with 9000 bytes
	DefaultPacket = 1472 // of a path with 1500 bytes
	MinBuffer     = 64 << 10
	DefaultBuffer = 4 << 20
	MaxBuffer     = 1 << 30
)

// common is what all parts of a connection have: how it is configured, and what
// it tells the application.
type common struct {
	config Config
	stats  Stats
	events []Event
}

// Config is what an end of a connection is told. The zero value is good for
// everything but Random.
type Config struct {
	Secure    secure.Config
	Link      Link // what is known of the radio
	Packet    int  // largest UDP payload to begin with, in bytes; 0: from Link.MTU, or DefaultPacket
	Buffer    int  // bytes that may wait to be put in order or to be read; 0: DefaultBuffer
	KeepAlive time.Duration
	DeadAfter time.Duration // without a packet although some are expected; 0: never
	NoCoding  bool          // no repairs: what is lost is sent again, and nothing ahead of time
	Random    io.Reader
}

func (c Config) withDefaults() (Config, error) {
	if c.Packet == 0 {
		c.Packet = DefaultPacket
		if c.Link.MTU > 0 {
			c.Packet = min(max(c.Link.MTU-headers, MinPacket), MaxPacket)
		}
	}
	if c.Buffer == 0 {
		c.Buffer = DefaultBuffer
	}
	if c.KeepAlive == 0 && c.DeadAfter > 0 {
		c.KeepAlive = c.DeadAfter / 4 // or a connection with nothing to send would end
	}
	switch {
	case c.Packet < MinPacket || c.Packet > MaxPacket:
		return c, fmt.Errorf("packet is %d bytes, expected %d to %d", c.Packet, MinPacket, MaxPacket)
	case c.Buffer < MinBuffer || c.Buffer > MaxBuffer:
		return c, fmt.Errorf("buffer is %d bytes, expected %d to %d", c.Buffer, MinBuffer, MaxBuffer)
	case c.Link.Loss < 0 || c.Link.Loss >= 1 || c.Link.Rate < 0 || c.Link.RTT < 0 || c.Link.MTU < 0:
		return c, errors.New("link: expected a rate, a round trip and an MTU of at least 0, and a loss share from 0 to below 1")
	case c.Random == nil:
		return c, errors.New("no source of randomness")
	}
	return c, c.Secure.Check()
}
