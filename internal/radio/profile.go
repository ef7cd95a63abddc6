package radio

import (
	"time"

	"linktrial/internal/telemetrysource"
)

// Profile is one radio as configured.
type Profile struct {
	Name         string `json:"name"` // as plans name it: "prc-117g-anw2c"
	Title        string `json:"title"`
	Manufacturer string `json:"manufacturer"`
	Model        string `json:"model"`
	Firmware     string `json:"firmware,omitempty"`
	Waveform     string `json:"waveform"`

	// Parameters is every number known of the radio, with where it comes from.
	Parameters []Parameter `json:"figures"`
	Notes      []string    `json:"notes,omitempty"` // what is known that is not a number

	Attach    *Attach                  `json:"attach,omitempty"`    // nil: not known
	Telemetry []telemetrysource.Source `json:"telemetry,omitempty"` // what is read of the radio, see [Profile.Sources]

	Emulation *Emulation `json:"emulation,omitempty"` // nil: cannot be emulated, Notes say why

	Hash string `json:"hash"` // SHA-256 of the file
}

// Parameter is a number, its unit and its source.
type Parameter struct {
	Name   string  `json:"name"` // "frequency", "channel_bandwidth", "transmit_power", "rate"
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Source string  `json:"source"`
	// Uncertain marks a parameter whose own source doubts it.
	Uncertain bool `json:"uncertain,omitempty"`
	// Unknown marks a parameter that matters and that no source gives; Value means nothing then.
	Unknown bool `json:"unknown,omitempty"`
}

// Emulation is how to emulate the radio. Rates, delays and overheads are of
// one hop; every parameter's source is in the profile's file beside it.
type Emulation struct {
	Medium             Medium        `json:"medium"`
	RateBitsPerSecond  float64       `json:"rate_bits_per_second"`    // on the channel, headers of the link included
	ProcessingDelay    time.Duration `json:"processing_delay_ns"`     // per hop, in the receiving radio
	Turnaround         time.Duration `json:"turnaround_ns,omitempty"` // the medium is idle for so long when the transmitter changes
	FrameOverheadBytes int           `json:"frame_overhead_bytes,omitempty"`
	MTUBytes           int           `json:"mtu_bytes"` // of the IP packet
	Queue              Queue         `json:"queue"`     // of each radio
	Channel            Channel       `json:"channel"`
	// Reverse is the error process of the directions that lead from the server
	// towards the client; nil: as Channel, with a realisation of its own.
	Reverse *Channel `json:"reverse_channel,omitempty"`
	Framing *Framing `json:"framing,omitempty"`
	FEC     *FEC     `json:"fec,omitempty"`
	ARQ     *ARQ     `json:"arq,omitempty"`
	// Reordering and Duplication are what the radio at a packet's destination does; nil: it
	// hands each packet out once, as it arrives.
	Reordering  *Reordering  `json:"reordering,omitempty"`
	Duplication *Duplication `json:"duplication,omitempty"`
	// Access refines a shared medium; nil: radios take turns.
	Access *Access `json:"access,omitempty"`
	// Sites replaces rate and channel of the relay–client link where a
	// topology's measurements call for it, by topology name.
	Sites map[string]Site `json:"sites,omitempty"`
}

// Medium is which radios may transmit at the same time.
type Medium string

const (
	// MediumFullDuplex: every direction of every link has its own rate.
	MediumFullDuplex Medium = "full-duplex"
	// MediumHalfDuplex: the two directions of one link share its rate; links do not interfere with each other.
	MediumHalfDuplex Medium = "half-duplex"
	// MediumShared: one transmission at a time among all radios of the channel,
	// so that a relay's second hop and every acknowledgement cost airtime.
	MediumShared Medium = "shared"
)

// Site is a link's own conditions; zero fields keep the profile's.
type Site struct {
	RateBitsPerSecond float64  `json:"rate_bits_per_second,omitempty"`
	Channel           *Channel `json:"channel,omitempty"`
	Reverse           *Channel `json:"reverse_channel,omitempty"`
}
