package radio

import (
	"strings"
	"time"

	"linktrial/internal/telemetrysource"
	"linktrial/internal/yamlschema"
)

// Bounds of what the emulator can be asked for.
const (
	minMTU, maxMTU = 576, 65535 // RFC 791: every host takes 576; the length field ends at 65535
	maxRate        = 100e9
	maxDelay       = time.Minute
	maxQueueBytes  = 1 << 30
	maxQueueCount  = 1 << 20
	maxWindow      = 1 << 20 // slots
	maxOwners      = 1000
	maxParameter   = 1e15 // in the unit that it is given in
)

// parameterUnits are the units a parameter may be given in, as SI and radio practice write them.
var parameterUnits = []string{"Hz", "kHz", "MHz", "GHz", "mW", "W", "dBm", "dBi", "bit/s", "kbit/s", "Mbit/s", "ms", "s", "B", "KiB", "m", "km", "ft"}

// ProfileLanguage is the keys of radio profiles.
var ProfileLanguage = &yamlschema.Document{
	Name: "radio", Title: "Radio profile", Root: profileKeys,
	Meaning: "A radio profile is one radio as configured, with the source of every parameter, and how to emulate it.",
}

var (
	rateForm      = yamlschema.Rate(1, maxRate)
	delayForm     = yamlschema.Duration(0, maxDelay)
	addressForm   = yamlschema.Matching("IP address", `^[0-9a-fA-F.:]+(%.+)?$`)
	prefixForm    = yamlschema.Matching("IP prefix", `^[0-9a-fA-F.:]+/[0-9]+$`)
	parameterForm = yamlschema.Matching("number with its unit, or `unknown`", `^\s*(unknown|[-+.0-9eExX_]+ \s*(`+strings.Join(parameterUnits, "|")+`))\s*$`)
	shareForm     = yamlschema.Matching("number or fraction, above 0 and at most 1", `^ *[-+.0-9eE]+ *(/ *[-+.0-9eE]+ *)?$`)
	deviceForm    = yamlschema.Matching("name of a network interface, at most 15 characters", `^[A-Za-z0-9._-]{0,15}$`)
)

var profileKeys = &yamlschema.Mapping{Name: "the profile", Keys: []yamlschema.Key{
	{Name: "name", Form: yamlschema.Name(), Required: true, Example: "own-hf", InTemplate: true, Meaning: "What plans and commands name the radio by."},
	{Name: "title", Form: yamlschema.Line(), Required: true, Example: "HF 4800 bit/s", InTemplate: true, Meaning: "What pages and exports call it."},
	{Name: "manufacturer", Form: yamlschema.Line(), Required: true, Example: "Harris", InTemplate: true, Meaning: "Who makes it."},
	{Name: "model", Form: yamlschema.Line(), Required: true, Example: "RT-1949(P)(C)", InTemplate: true, Meaning: "Its model."},
	{Name: "firmware", Form: yamlschema.Line(), Unset: "not known", Example: "4.4.0", Meaning: "Version of its firmware."},
	{Name: "waveform", Form: yamlschema.Line(), Required: true, Example: "ANW2C", InTemplate: true, Meaning: "The waveform that it is configured with."},
	{Name: "figures", Form: yamlschema.List(yamlschema.Of(parameterKeys), 0, 0), Required: true, Example: `[{name: frequency, value: 300 MHz, source: "the frequency plan"}]`, InTemplate: true, Meaning: "Parameters of the radio, each with its source."},
	{Name: "notes", Form: notesForm, Unset: "none", Example: `["The modulation is uncertain."]`, Meaning: "What a reader of the results must know; pages and exports show it."},
	{Name: "attach", Form: yamlschema.Of(attachKeys), Unset: "the preflight checks no attachment", Example: `{reach: "by its Ethernet adapter", source: "the manual, page 3", interface: eth1}`, Meaning: "How a node is connected to the radio."},
	{Name: "telemetry", Form: yamlschema.List(yamlschema.Any("source of telemetry"), 0, telemetrysource.MaxSources), Unset: "nothing is read of the radio", Example: "[{name: position, kind: gpsd, source: a receiver at the laptop}]", Meaning: "What is read of the radio and the laptop."},
	{Name: "emulation", Form: yamlschema.Of(emulationKeys), Unset: "the radio cannot be emulated", Meaning: "How to emulate it.",
		Example: "{medium: {value: shared, source: s}, rate: {value: 2 Mbit/s, source: s}, processing_delay: {value: 5ms, source: s}, mtu: {value: 1500 B, source: s}, queue: {bytes: 64 KiB, source: s}, channel: {model: perfect, source: s}}"},
}}

var parameterKeys = &yamlschema.Mapping{Name: "parameters", Keys: []yamlschema.Key{
	{Name: "name", Form: yamlschema.Text(), Required: true, Example: "frequency", Meaning: "Unique among the parameters."},
	{Name: "value", Form: parameterForm, Required: true, Example: "402.5 MHz", Meaning: "The value, in " + strings.Join(parameterUnits, ", ") + "."},
	{Name: "unit", Form: yamlschema.Word(parameterUnits...), Unset: "it follows the number", Example: "dBi", Beside: "{value: unknown}", Meaning: "The unit of a parameter that is not known."},
	sourceKey("Where the parameter is known from."),
	{Name: "uncertain", Form: yamlschema.Flag(), Default: false, Example: "true", Meaning: "Its source doubts it."},
}}

var attachKeys = &yamlschema.Mapping{Name: "attach", Keys: []yamlschema.Key{
	{Name: "reach", Form: yamlschema.Text(), Required: true, Example: `"by the radio's Ethernet dongle"`, Meaning: "How the laptop reaches the radio, for people."},
	sourceKey("Where that is known from."),
	{Name: "interface", Form: deviceForm, Unset: "the agent's `--device`", Example: "eth1", Meaning: "The laptop's side."},
	{Name: "mtu", Form: yamlschema.Size(minMTU, maxMTU), Unset: "not checked", Example: "1500 B", Meaning: "Largest IP packet of that interface."},
	{Name: "roles", Form: yamlschema.Of(&yamlschema.Mapping{Name: "roles", Inline: true, Keys: []yamlschema.Key{roleKey(RoleClient), roleKey(RoleRelay), roleKey(RoleServer)}}), Unset: "the nodes do not differ", Example: "{client: {forwarding: false}}", Meaning: "What differs between nodes."},
}}

var rolesKeys = attachKeys.Key("roles").Form.Mapping

func roleKey(r Role) yamlschema.Key {
	return yamlschema.Key{Name: string(r), Form: yamlschema.Of(attachRoleKeys), Unset: "nothing is stated", Example: "{address: 10.77.0.1/24, radio: 10.77.0.101}", Meaning: "What is set up on the " + string(r) + "."}
}

var attachRoleKeys = &yamlschema.Mapping{Name: "role", Keys: []yamlschema.Key{
	{Name: "interface", Form: deviceForm, Unset: "that of all", Example: "eth2", Meaning: "The node's side."},
	{Name: "address", Form: yamlschema.Matching("IP address with its prefix", prefixForm.Pattern), Unset: "not checked", Example: "10.77.0.1/24", Meaning: "Of the interface."},
	{Name: "radio", Form: addressForm, Unset: "not known", Example: "10.77.0.101", Meaning: "At which the node reaches its own radio, for telemetry."},
	{Name: "routes", Form: yamlschema.List(yamlschema.Of(routeKeys), 0, 0), Unset: "not checked", Example: "[{to: 10.78.0.0/24, via: 10.77.0.101}]", Meaning: "Routes that the node must have."},
	{Name: "forwarding", Form: yamlschema.Flag(), Unset: "not checked", Example: "false", Meaning: "Whether the node forwards packets."},
}}

var routeKeys = &yamlschema.Mapping{Name: "routes", Inline: true, Keys: []yamlschema.Key{
	{Name: "to", Form: prefixForm, Required: true, Example: "10.78.0.0/24", Meaning: "Destination, without host bits."},
	{Name: "via", Form: addressForm, Unset: "on the interface itself", Example: "10.77.0.2", Meaning: "The next hop."},
}}

// sourced is a parameter of the emulation, which stands with its source.
func sourced(name string, value yamlschema.Form, example, meaning string) yamlschema.Key {
	m := &yamlschema.Mapping{Name: name + " with its source", Inline: true, Keys: []yamlschema.Key{
		{Name: "value", Form: value, Required: true, Example: example, Meaning: meaning}, sourceKey("Where the parameter is known from."),
	}}
	return yamlschema.Key{Name: name, Form: yamlschema.Of(m), Required: true, Example: "{value: " + example + ", source: assumed}", Meaning: meaning}
}

// unless is a key that may be absent.
func unless(k yamlschema.Key, unset string) yamlschema.Key {
	k.Required, k.Unset = false, unset
	return k
}

var emulationKeys = &yamlschema.Mapping{Name: "emulation", Keys: []yamlschema.Key{
	sourced("medium", yamlschema.Word(MediumFullDuplex, MediumHalfDuplex, MediumShared), "shared", "Who may transmit at the same time. `half-duplex`: the directions of a link share its rate; `shared`: one transmission at a time among all radios."),
	sourced("rate", rateForm, "2 Mbit/s", "Rate on the air."),
	sourced("processing_delay", delayForm, "5ms", "Delay of one hop in the receiving radio; propagation comes from the topology."),
	unless(sourced("turnaround", delayForm, "1ms", "Idle time when the transmitter changes."), "none"),
	unless(sourced("frame_overhead", yamlschema.Size(0, maxMTU), "64 B", "Bytes added to each packet, where there is no framing."), "none"),
	sourced("mtu", yamlschema.Size(minMTU, maxMTU), "1500 B", "Largest IP packet."),
	{Name: "queue", Form: yamlschema.Of(queueKeys), Required: true, Example: "{bytes: 64 KiB, source: assumed}", Meaning: "What a radio holds for transmission: a bound in bytes, packets or both."},
	{Name: "channel", Form: yamlschema.Of(channelKeys), Required: true, Example: "{model: uniform, loss: 0.1, source: assumed}", Meaning: "Error process of both directions, each with a realisation of its own."},
	{Name: "reverse_channel", Form: yamlschema.Of(channelKeys), Unset: "as channel", Example: "{model: perfect, source: assumed}", Meaning: "Error process of the directions that lead from the server towards the client."},
	{Name: "framing", Form: yamlschema.Of(framingKeys), Unset: "packets are sent whole", Example: "{frame: 50 B, header: 6 B, source: assumed}", Instead: []string{"frame_overhead"}, Meaning: "Packets are cut into frames on the air."},
	{Name: "fec", Form: yamlschema.Of(fecKeys), Unset: "none", Example: "{code: convolutional, rate: 1/2, residual_bit_error_rate: 1e-5, source: assumed}", Meaning: "Forward error correction."},
	{Name: "arq", Form: yamlschema.Of(arqKeys), Unset: "none", Example: "{nack_timer: 10, persistence: 3, source: assumed}", Beside: "{framing: {frame: 50 B, header: 6 B, source: assumed}}", Instead: []string{"frame_overhead"}, Meaning: "Selective repeat of frames; needs framing."},
	{Name: "reordering", Form: yamlschema.Of(reorderingKeys), Unset: "none", Example: "{share: 0.01, delay: 20ms, source: assumed}", Meaning: "The radio at their destination holds packets back, so that others overtake them."},
	{Name: "duplication", Form: yamlschema.Of(duplicationKeys), Unset: "none", Example: "{share: 0.01, source: assumed}", Meaning: "The radio at their destination hands packets out twice, at once."},
	{Name: "access", Form: yamlschema.Of(accessKeys), Unset: "radios take turns", Example: "{tdma: {slot: 50ms, owners: [client, relay, server]}, source: assumed}", Meaning: "Turns on a shared medium: either tdma or csma."},
	{Name: "sites", Form: yamlschema.Of(&yamlschema.Mapping{Name: "topologies", Free: &siteForm}), Unset: "none", Example: "{vip-lot: {rate: 1 Mbit/s, source: assumed}}", Meaning: "What differs at a topology on the links of the client: rate, channel or both."},
}}

var siteForm = yamlschema.Of(siteKeys)

var siteKeys = &yamlschema.Mapping{Name: "sites", Keys: []yamlschema.Key{
	sourceKey("Where it is known from."),
	{Name: "rate", Form: rateForm, Unset: "the profile's", Example: "3.93 Mbit/s", Meaning: "Rate on the air."},
	{Name: "channel", Form: yamlschema.Of(siteChannelKeys), Unset: "the profile's", Example: "{model: uniform, loss: 0.01}", Meaning: "Error process."},
	{Name: "reverse_channel", Form: yamlschema.Of(siteChannelKeys), Unset: "the profile's", Example: "{model: perfect}", Meaning: "Error process from the server towards the client."},
}}

var queueKeys = &yamlschema.Mapping{Name: "queue", Keys: []yamlschema.Key{
	{Name: "bytes", Form: yamlschema.Size(1, maxQueueBytes), Unset: "no bound in bytes", Example: "64 KiB", Meaning: "Most bytes; a packet of the MTU fits."},
	{Name: "packets", Form: yamlschema.Integer(1, maxQueueCount), Unset: "no bound in packets", Example: "50", Meaning: "Most packets."},
	{Name: "red", Form: yamlschema.Of(redKeys), Unset: "drop-tail", Example: "{min: 20 KB, max: 60 KB, weight: 0.002, max_probability: 0.1}", Beside: "{bytes: 64 KiB}", Meaning: "Random early detection (Floyd, Jacobson 1993) in its byte mode; needs a bound in bytes."},
	sourceKey("Where the bound is known from."),
}}

var redKeys = &yamlschema.Mapping{Name: "red", Keys: []yamlschema.Key{
	{Name: "min", Form: yamlschema.Size(0, maxQueueBytes), Required: true, Example: "20 KB", Meaning: "Average queue from which on packets are dropped."},
	{Name: "max", Form: yamlschema.Size(1, maxQueueBytes), Required: true, Example: "60 KB", Meaning: "Average queue from which on all are, unless gentle is true; at most the queue's bytes."},
	{Name: "weight", Form: yamlschema.Number(leastShare, 1), Required: true, Example: "0.002", Meaning: "Weight of a new sample in the average."},
	{Name: "max_probability", Form: yamlschema.Number(leastShare, 1), Required: true, Example: "0.1", Meaning: "Probability of a drop at max."},
	{Name: "gentle", Form: yamlschema.Flag(), Default: false, Example: "true", Meaning: "The probability rises on to 1 at twice max."},
	{Name: "ecn", Form: yamlschema.Flag(), Default: false, Example: "true", Meaning: "Packets of ECN-capable transports are marked (RFC 3168) where others are dropped early."},
}}

var framingKeys = &yamlschema.Mapping{Name: "framing", Keys: []yamlschema.Key{
	{Name: "frame", Form: yamlschema.Size(1, maxMTU), Required: true, Example: "50 B", Meaning: "Size of a frame on the air, header included."},
	{Name: "header", Form: yamlschema.Size(0, maxMTU), Required: true, Example: "6 B", Meaning: "Size of its header."},
	sourceKey("Where the sizes are known from."),
}}

// fecCodes are the codes, with their keys.
var fecCodes = variants{
	{"Reed–Solomon over GF(2^8).", &yamlschema.Mapping{Name: string(FECReedSolomon), Keys: []yamlschema.Key{
		{Name: "block", Form: yamlschema.Integer(3, 255), Required: true, Example: "255", Meaning: "Symbols of a block."},
		{Name: "data", Form: yamlschema.Integer(1, 255), Required: true, Example: "223", Meaning: "Symbols of data in a block, fewer than block."},
		{Name: "interleaving", Form: yamlschema.Integer(1, 1024), Default: 1, Example: "4", Meaning: "Blocks that are sent symbol by symbol in turn."},
	}}},
	{"Convolutional, by what it leaves.", &yamlschema.Mapping{Name: string(FECConvolutional), Keys: []yamlschema.Key{
		{Name: "rate", Form: shareForm, Required: true, Example: "1/2", Meaning: "Bits of data for each bit on the air."},
		{Name: "residual_bit_error_rate", Form: yamlschema.Number(1e-15, 0.5), Required: true, Example: "1e-5", Meaning: "Mean share of wrong bits that is left after decoding."},
	}}},
}

var fecKeys = &yamlschema.Mapping{Name: "fec", Keys: append(fecCodes.keyed(yamlschema.Key{Name: "code", Meaning: "The code."}), sourceKey("Where the code is known from."))}

var arqKeys = &yamlschema.Mapping{Name: "arq", Keys: []yamlschema.Key{
	{Name: "nack_timer", Form: yamlschema.Integer(0, 100_000), Required: true, Example: "10", Meaning: "How long a receiver that misses a frame waits before it asks for it, in frame times."},
	{Name: "persistence", Form: yamlschema.Integer(0, 10_000), Required: true, Example: "3", Meaning: "Most retransmissions of a frame."},
	{Name: "in_order", Form: yamlschema.Flag(), Default: true, Example: "false", Meaning: "Packets wait until every earlier one has arrived or is given up."},
	sourceKey("Where the parameters are known from."),
}}

var reorderingKeys = &yamlschema.Mapping{Name: "reordering", Keys: []yamlschema.Key{
	{Name: "share", Form: probability, Required: true, Example: "0.01", Meaning: "Share of the packets that are held back, 0 to 1."},
	{Name: "delay", Form: delayForm, Required: true, Example: "20ms", Meaning: "For how long."},
	sourceKey("Where the parameters are known from."),
}}

var duplicationKeys = &yamlschema.Mapping{Name: "duplication", Keys: []yamlschema.Key{
	{Name: "share", Form: probability, Required: true, Example: "0.01", Meaning: "Share of the packets that come out twice, 0 to 1."},
	sourceKey("Where the share is known from."),
}}

var accessKeys = &yamlschema.Mapping{Name: "access", Keys: []yamlschema.Key{
	{Name: "tdma", Form: yamlschema.Of(tdmaKeys), Unset: "csma", Example: "{slot: 50ms, guard: 1ms, owners: [client, relay, server]}", Instead: []string{"csma"}, Meaning: "Time slots in a fixed round."},
	{Name: "csma", Form: yamlschema.Of(csmaKeys), Unset: "tdma", Example: "{difs: 50us, slot: 20us, window_min: 31, window_max: 1023, retries: 7}", Instead: []string{"tdma"}, Meaning: "Carrier sense with collision avoidance (IEEE 802.11, DCF)."},
	sourceKey("Where it is known from."),
}}

var tdmaKeys = &yamlschema.Mapping{Name: "tdma", Keys: []yamlschema.Key{
	{Name: "slot", Form: yamlschema.Duration(minSlot, maxDelay), Required: true, Example: "50ms", Meaning: "Length of a slot; the longest transmission fits."},
	{Name: "guard", Form: delayForm, Default: time.Duration(0), Example: "1ms", Meaning: "End of a slot in which nothing is sent."},
	{Name: "owners", Form: yamlschema.List(roleWord, 1, maxOwners), Required: true, Example: "[client, relay, server]", Meaning: "Whose each slot of a round is; rounds run from the start of the trial."},
}}

var csmaKeys = &yamlschema.Mapping{Name: "csma", Keys: []yamlschema.Key{
	{Name: "difs", Form: delayForm, Required: true, Example: "50us", Meaning: "How long the medium must be idle before a radio counts down."},
	{Name: "slot", Form: yamlschema.Duration(minSlot, maxDelay), Required: true, Example: "20us", Meaning: "Length of a slot of the countdown."},
	{Name: "window_min", Form: yamlschema.Integer(1, maxWindow), Required: true, Example: "31", Meaning: "Slots of which the first countdown is drawn."},
	{Name: "window_max", Form: yamlschema.Integer(1, maxWindow), Required: true, Example: "1023", Meaning: "Slots to which the window grows with collisions, at least window_min."},
	{Name: "retries", Form: yamlschema.Integer(0, 1000), Required: true, Example: "7", Meaning: "Most retransmissions after collisions."},
}}
