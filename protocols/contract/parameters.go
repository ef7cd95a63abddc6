package contract

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
)

// Version of the driver contract. A driver states the version it speaks in its
// manifest; another one is refused.
const Version = 2

// Role says what a driver process is to do.
type Role string

const (
	// RoleQuery asks whether the driver can run on this node: it answers with a
	// ready event that carries [Info], or an error event and exit code 127.
	RoleQuery Role = "query"
	// RoleServer listens and accepts transfers, any number of them and several
	// at once, until it receives SIGTERM.
	RoleServer Role = "server"
	// RoleClient carries one transfer and exits.
	RoleClient Role = "client"
	// RoleRelay accepts connections at Local and carries the bytes of each one over
	// a connection of its own to Remote, and back, until it receives SIGTERM.
	RoleRelay Role = "relay"
)

// Exit codes of a driver.
const (
	ExitOK          = 0   // the client has written a result; the server was told to stop
	ExitFailed      = 1   // an error event says why
	ExitUnsupported = 127 // this node cannot run the driver; an error event with CodeUnsupported says why
)

// Parameters is the document that a driver reads from standard input: its first line. In
// the client of a transfer the payload follows at once.
type Parameters struct {
	Contract int  `json:"contract"` // [Version]
	Role     Role `json:"role"`

	// Local is the address to bind: the radio's address on this node. Server
	// and relay listen on Local.Address and Local.Port; the client binds
	// Local.Address where it is set and takes any port.
	Local Endpoint `json:"local"`
	// Remote is the address that the client connects to, the server's or that of
	// the first relay, and the next address for a relay.
	Remote Endpoint `json:"remote,omitzero"`
	// Device is the radio's interface ("radio0"), for drivers that need to name it.
	Device string `json:"device,omitempty"`

	// Paths are the radios of this node where it has more than one: first Device with
	// Local.Address, then the others. A driver that uses one radio ignores them.
	Paths []Path `json:"paths,omitempty"`

	Transfer Transfer       `json:"transfer,omitzero"` // for the client
	Options  map[string]any `json:"options"`           // as the manifest declares them, defaults filled in
	Limits   Limits         `json:"limits"`

	// DSCP is the code point that the driver gives all its packets on the radio
	// (RFC 2474), 0…63; 0 is the default, which needs nothing done. Only for drivers
	// whose manifest has [FeatureDSCP].
	DSCP int `json:"dscp,omitempty"`

	// SampleIntervalMS is the time between two sample events, in milliseconds.
	SampleIntervalMS int `json:"sample_interval_ms"`

	// Link is what the plan lets the protocol know of the radio beforehand
	// ("complete knowledge" in decola-2006); absent otherwise.
	Link *Link `json:"link,omitempty"`

	// LogFolder is a folder of this node into which client and server may write a
	// log of each transfer, see [LogFile]; empty: there is none.
	LogFolder string `json:"log_folder,omitempty"`
}

// Endpoint is an IP address and a port of whatever the protocol's ports are.
type Endpoint struct {
	Address string `json:"address"`
	Port    int    `json:"port,omitempty"`
}

// Path is one radio of a node with several.
type Path struct {
	Device  string `json:"device,omitempty"` // its interface, where it is known
	Address string `json:"address"`          // of that interface
}

// Transfer is what the client sends.
type Transfer struct {
	// ID is the transfer's identity, 32 lower-case hexadecimal digits. It
	// travels in the header and comes back in the events of both ends.
	ID        string `json:"id"`
	SizeBytes int64  `json:"size_bytes"` // payload; 0 is a transfer of nothing, acknowledged all the same
	// DurationMS, where not 0, bounds the transfer by time, in milliseconds: the
	// client sends for so long after its clock has started and then ends an open
	// payload ([Header.Open]); SizeBytes is the most it sends. Only for drivers
	// whose manifest has [FeatureDuration].
	DurationMS int64 `json:"duration_ms,omitempty"`
	// FromServer: the server sends the packets of a probe, and the client measures what
	// arrives. Only for drivers whose manifest has [FeatureFromServer].
	FromServer bool `json:"from_server,omitempty"`
	// Seed of a probe's packets, a decimal string because it uses all 64 bits. Drivers of
	// [KindTransfer] get their payload on standard input, and no seed.
	Seed uint64 `json:"seed,string,omitempty"`
}

// Limits bound what a driver may wait for. The executor holds the same limits
// from outside and ends a driver that does not keep them. 0 is no limit.
type Limits struct {
	ConnectMS  int64 `json:"connect_ms"`  // from start to the server's one byte
	TransferMS int64 `json:"transfer_ms"` // from the start of the clock to the acknowledgement
}

// Link is knowledge of the channel given to the protocol.
type Link struct {
	// RateBitsPerSecond is what the path carries of IP packets of its MTU, headers of IP
	// counted: the frames around packets, the link's own retransmissions and the gaps of the
	// medium are taken off. ChannelRateBitsPerSecond leaves them in; 0: not told.
	RateBitsPerSecond        float64 `json:"rate_bits_per_second"`
	ChannelRateBitsPerSecond float64 `json:"channel_rate_bits_per_second,omitempty"`

	RoundTripMS float64 `json:"round_trip_ms"` // without queueing
	MTUBytes    int     `json:"mtu_bytes"`
	LossShare   float64 `json:"loss_share,omitempty"` // 0…1, mean packet loss
}

// MaxLogFile is the size of a log file at most, in bytes.
const MaxLogFile = 256 << 20

// LogFile is the path of the log of a transfer at this end; ext is the file's
// extension, without a dot.
func (p *Parameters) LogFile(transfer, ext string) string {
	return filepath.Join(p.LogFolder, transfer+"."+string(p.Role)+"."+ext)
}

// ParseParameters reads and checks the document of standard input.
func ParseParameters(b []byte) (*Parameters, error) {
	var p Parameters
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	if p.Contract != Version {
		return nil, fmt.Errorf("parameters: contract version %d, this driver speaks %d", p.Contract, Version)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.SampleIntervalMS <= 0 {
		p.SampleIntervalMS = 100
	}
	return &p, nil
}

func isIPv4(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && a.Is4()
}

// MaxDSCP is the highest code point (RFC 2474): it has six bits.
const MaxDSCP = 63

// check holds the fields against the role.
func (p *Parameters) check() error {
	if p.DSCP < 0 || p.DSCP > MaxDSCP {
		return fmt.Errorf("parameters: dscp is %d, expected 0 to %d", p.DSCP, MaxDSCP)
	}
	for field, e := range map[string]Endpoint{"local": p.Local, "remote": p.Remote} {
		if a, err := netip.ParseAddr(e.Address); e.Address != "" && (err != nil || a.Zone() != "") {
			return fmt.Errorf("parameters: %s.address is %q, expected an IP address without a zone", field, e.Address)
		}
	}
	if p.Local.Address != "" && p.Remote.Address != "" && isIPv4(p.Local.Address) != isIPv4(p.Remote.Address) {
		return fmt.Errorf("parameters: local.address is %q and remote.address is %q, expected addresses of one family", p.Local.Address, p.Remote.Address)
	}
	for i, path := range p.Paths {
		if a, err := netip.ParseAddr(path.Address); err != nil || a.Zone() != "" {
			return fmt.Errorf("parameters: paths[%d].address is %q, expected an IP address", i, path.Address)
		}
	}
	if (p.Role == RoleServer || p.Role == RoleClient) && p.LogFolder != "" && !filepath.IsAbs(p.LogFolder) {
		return fmt.Errorf("parameters: log_folder is %q, expected an absolute path", p.LogFolder)
	}
	switch p.Role {
	case RoleQuery:
		return nil
	case RoleServer:
		if p.Local.Address == "" || !port(p.Local.Port) {
			return fmt.Errorf("parameters: server needs local.address and local.port 1…65535, found %q and %d", p.Local.Address, p.Local.Port)
		}
	case RoleRelay:
		if p.Local.Address == "" || !port(p.Local.Port) || p.Remote.Address == "" || !port(p.Remote.Port) {
			return fmt.Errorf("parameters: relay needs local and remote, each with an address and a port 1…65535, found %q and %d, and %q and %d",
				p.Local.Address, p.Local.Port, p.Remote.Address, p.Remote.Port)
		}
	case RoleClient:
		if p.Remote.Address == "" || !port(p.Remote.Port) {
			return fmt.Errorf("parameters: client needs remote.address and remote.port 1…65535, found %q and %d", p.Remote.Address, p.Remote.Port)
		}
		if p.Transfer.SizeBytes < 0 || p.Transfer.SizeBytes > MaxSize {
			return fmt.Errorf("parameters: transfer.size_bytes is %d, expected 0 to %d", p.Transfer.SizeBytes, int64(MaxSize))
		}
		if p.Transfer.DurationMS < 0 || p.Transfer.DurationMS > maxDurationMS {
			return fmt.Errorf("parameters: transfer.duration_ms is %d, expected 0 to %d", p.Transfer.DurationMS, int64(maxDurationMS))
		}
		if _, err := ParseTransferID(p.Transfer.ID); err != nil {
			return fmt.Errorf("parameters: %w", err)
		}
	default:
		return fmt.Errorf("parameters: role %q, expected query, server, client or relay", p.Role)
	}
	return nil
}

// maxDurationMS bounds a transfer's time, so that it can be counted in nanoseconds.
const maxDurationMS = 365 * 24 * 3600 * 1000

func port(n int) bool { return n >= 1 && n <= 65535 }
