package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Kind names an event.
type Kind string

const (
	KindReady     Kind = "ready"     // probe: can run here; server: listens; client: parameters understood, about to connect
	KindPayload   Kind = "payload"   // server of a transfer: so many bytes of payload follow the line
	KindConnected Kind = "connected" // both ends: connected (client: the server's one byte has arrived)
	KindSample    Kind = "sample"    // both ends, periodically while a transfer runs
	KindResult    Kind = "result"    // both ends: a transfer ended well
	KindError     Kind = "error"     // a transfer, or the driver as a whole, failed
)

// Code is the closed list of what can go wrong in a driver.
type Code string

const (
	CodeUnsupported       Code = "unsupported"        // this node cannot run the driver
	CodeBadParameters     Code = "bad-parameters"     // standard input was not understood, or an option is unknown or out of range
	CodeListenFailed      Code = "listen-failed"      // the server could not open its port
	CodeConnectRefused    Code = "connect-refused"    // nobody listens there
	CodeConnectTimeout    Code = "connect-timeout"    // no connection, or no first byte, within limits.connect_ms
	CodeUnreachable       Code = "unreachable"        // no route to the other end
	CodeReset             Code = "reset"              // the other end or the protocol gave the connection up
	CodeTransferTimeout   Code = "transfer-timeout"   // no acknowledgement within limits.transfer_ms
	CodeCorrupted         Code = "corrupted"          // the protocol itself found that a byte arrived which was not sent
	CodeProtocolViolation Code = "protocol-violation" // the other end sent something else than the transfer's next step
	CodeAborted           Code = "aborted"            // SIGTERM while a transfer ran
	CodeInternal          Code = "internal"           // a fault of the driver itself
)

// Codes lists every [Code].
var Codes = []Code{
	CodeUnsupported, CodeBadParameters, CodeListenFailed, CodeConnectRefused, CodeConnectTimeout,
	CodeUnreachable, CodeReset, CodeTransferTimeout, CodeCorrupted, CodeProtocolViolation, CodeAborted, CodeInternal,
}

// MaxBlock is the most payload that one [KindPayload] event announces, in bytes: 1 MiB.
const MaxBlock = 1 << 20

// MaxLine is the longest event line, in bytes without its newline. A longer one is a fault.
const MaxLine = 64 << 10

// Event is one line of a driver's standard output. Which fields are set
// depends on the kind; transfer names the transfer it belongs to, and is empty
// for events of the driver as a whole.
type Event struct {
	Event    Kind   `json:"event"`
	Transfer string `json:"transfer,omitempty"`

	Info   *Info   `json:"info,omitempty"`   // ready
	Sample *Sample `json:"sample,omitempty"` // sample
	Result *Result `json:"result,omitempty"` // result

	// Bytes, on payload: how many bytes of payload follow the line, 1 to [MaxBlock].
	Bytes int `json:"bytes,omitempty"`

	// ConnectNS, on connected: from the first connect attempt to the server's
	// one byte, in nanoseconds (client only).
	ConnectNS int64 `json:"connect_ns,omitempty"`

	Code    Code   `json:"code,omitempty"`    // error
	Message string `json:"message,omitempty"` // error: one sentence for people
}

// NotSupported begins a detail about a value of an option that the node does not have.
const NotSupported = "not supported: "

// Info is what a driver says of itself when it is ready.
type Info struct {
	// Implementation names what carries the data: "linux-kernel", "usrsctp 0.9.5.0", "libudt 4.11".
	Implementation string `json:"implementation"`
	// Choices lists, for options whose choices depend on the node, what there
	// is: {"congestion": ["reno","cubic","bbr"]}.
	Choices map[string][]string `json:"choices,omitempty"`
	// Detail is anything worth keeping in the provenance. A detail whose name is
	// OPTION=VALUE tells where this value of an option comes from, or begins with
	// [NotSupported] and tells why the node does not have it.
	Detail map[string]string `json:"detail,omitempty"`
}

// Sample is the state of one transfer at one moment. A driver sets what its
// protocol knows and leaves out the rest: absent is not zero.
//
// Each field is a row of [Metrics], by its tags: the unit, the [MetricKind] and
// the meaning. A new metric is one more field here, with which
//
//   - go test ./protocols/contract -update writes its row in docs/driver-contract.md;
//   - a migration adds a column of its name to the table samples: bigint, or double
//     precision for a *float64;
//   - docs/exports.md gets the row that the tests ask for.
//
// Ingest, samples.csv, the API and the attempt's page then carry it. A C++ driver that
// knows it needs the field in linktrial::Sample and a line in protocols/cxx/events.cpp.
// The page shows it in a panel of its own, unless the web's series model has a line for it.
type Sample struct {
	ElapsedNS     int64    `json:"elapsed_ns" unit:"ns" kind:"cumulative" meaning:"time since the transfer's clock started"`
	SentBytes     int64    `json:"sent_bytes" unit:"B" kind:"cumulative" meaning:"payload handed to the protocol; at the server, received"`
	AckedBytes    *int64   `json:"acked_bytes,omitempty" unit:"B" kind:"cumulative" meaning:"payload that the other end's protocol has acknowledged; never more than sent_bytes"`
	CwndBytes     *int64   `json:"cwnd_bytes,omitempty" unit:"B" kind:"gauge" meaning:"congestion window"`
	SsthreshBytes *int64   `json:"ssthresh_bytes,omitempty" unit:"B" kind:"gauge" meaning:"slow-start threshold"`
	FlightBytes   *int64   `json:"flight_bytes,omitempty" unit:"B" kind:"gauge" meaning:"sent and not yet acknowledged"`
	SRTTUS        *int64   `json:"srtt_us,omitempty" unit:"µs" kind:"gauge" meaning:"smoothed round-trip time"`
	RTTVarUS      *int64   `json:"rttvar_us,omitempty" unit:"µs" kind:"gauge" meaning:"variation of the round-trip time"`
	RTOUS         *int64   `json:"rto_us,omitempty" unit:"µs" kind:"gauge" meaning:"retransmission timeout"`
	Retransmits   *int64   `json:"retransmits,omitempty" unit:"count" kind:"counter" meaning:"packets or segments sent again"`
	Timeouts      *int64   `json:"timeouts,omitempty" unit:"count" kind:"counter" meaning:"retransmission timeouts that expired"`
	LossEvents    *int64   `json:"loss_events,omitempty" unit:"count" kind:"counter" meaning:"losses, as the protocol counts them"`
	PacingBPS     *float64 `json:"pacing_bps,omitempty" unit:"bit/s" kind:"gauge" meaning:"rate at which the protocol sends"`
	BandwidthBPS  *float64 `json:"bandwidth_bps,omitempty" unit:"bit/s" kind:"gauge" meaning:"the protocol's own estimate of the path's rate"`
	// Bytes of the stream, of which the transfer's header is a part. What an acknowledged byte
	// cost follows from both: transmitted_bytes less retransmitted_bytes is what was sent once.
	TransmittedBytes   *int64 `json:"transmitted_bytes,omitempty" unit:"B" kind:"cumulative" meaning:"bytes of the stream that were sent, with those sent again; never less than retransmitted_bytes"`
	RetransmittedBytes *int64 `json:"retransmitted_bytes,omitempty" unit:"B" kind:"cumulative" meaning:"bytes of the stream that were sent again; repairs of an erasure code do not count"`
	MinRTTUS           *int64 `json:"min_rtt_us,omitempty" unit:"µs" kind:"gauge" meaning:"least round-trip time that the protocol remembers"`

	// More carries what only this protocol has; names end in their unit.
	More map[string]float64 `json:"more,omitempty"`
}

// MoreRepairs is the name in [Sample.More] of the packets that make up for lost ones
// without being these again, as those of an erasure code. What a sender counts as sent
// again and as repairs is held against what an emulated radio has lost.
const MoreRepairs = "repairs"

// Result is one transfer that ended well.
type Result struct {
	SizeBytes int64 `json:"size_bytes"`
	// ElapsedNS is the paper's time (breedy-2015, section V): from just after
	// the size is sent until the one-byte acknowledgement arrives. Server: from
	// the header to the last byte.
	ElapsedNS int64 `json:"elapsed_ns"`
	// ConnectNS is recorded apart (client only).
	ConnectNS int64 `json:"connect_ns,omitempty"`
	// Digest is the SHA-256 of the payload in lower-case hexadecimal: of what was given
	// to the client and sent, of what the server handed over. Linktrial sets it, no driver.
	Digest string `json:"digest,omitempty"`
	// Final is the last state of the protocol.
	Final *Sample `json:"final,omitempty"`
	// Paths is what each path of [Parameters.Paths] has carried, in their order, of
	// drivers that use several: at the client what the other end has acknowledged, at
	// the server what arrived.
	Paths []PathResult `json:"paths,omitempty"`
	// Info may refine what ready said (for example the congestion control the
	// kernel really used on this connection).
	Info *Info `json:"info,omitempty"`
	// Probe is what a probe measured; drivers of [KindProbe] alone set it. SizeBytes is
	// then what was sent, at the server what arrived.
	Probe *ProbeMetrics `json:"probe,omitempty"`
}

// PathResult is what one path of a transfer has carried.
type PathResult struct {
	Device  string `json:"device,omitempty"`
	Address string `json:"address"` // this end's
	// Bytes of the stream; what was sent again on another path counts on both.
	Bytes int64 `json:"bytes"`
	// Share of the bytes of all paths, 0…1.
	Share float64 `json:"share"`
}

// MaxPaths bounds the paths of a result.
const MaxPaths = 16

// checkPaths holds the shares against the bytes.
func (r *Result) checkPaths() error {
	if len(r.Paths) > MaxPaths {
		return fmt.Errorf("result with %d paths, expected at most %d", len(r.Paths), MaxPaths)
	}
	total := 0.0
	for i, p := range r.Paths {
		if p.Bytes < 0 || !(p.Share >= 0 && p.Share <= 1) {
			return fmt.Errorf("result with paths[%d] of %d bytes and the share %v, expected at least 0, and 0 to 1", i, p.Bytes, p.Share)
		}
		total += float64(p.Bytes)
	}
	for i, p := range r.Paths {
		if want := float64(p.Bytes) / max(total, 1); math.Abs(p.Share-want) > 1e-6 {
			return fmt.Errorf("result with paths[%d] of share %v, expected %v by its bytes", i, p.Share, want)
		}
	}
	return nil
}

// ErrLineTooLong reports an event line over [MaxLine].
var ErrLineTooLong = fmt.Errorf("event line longer than %d bytes", MaxLine)

// ParseEvent reads and checks one line of a driver's standard output.
func ParseEvent(line []byte) (*Event, error) {
	if len(line) > MaxLine {
		return nil, ErrLineTooLong
	}
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, fmt.Errorf("not an event: %w", err)
	}
	if e.Transfer != "" {
		if _, err := ParseTransferID(e.Transfer); err != nil {
			return nil, err
		}
	}
	switch e.Event {
	case KindReady:
		if e.Info == nil || e.Info.Implementation == "" {
			return nil, errors.New("ready event without info.implementation")
		}
	case KindConnected:
		if e.Transfer == "" {
			return nil, errors.New("connected event without transfer")
		}
		if e.ConnectNS < 0 {
			return nil, fmt.Errorf("connected event with connect_ns %d", e.ConnectNS)
		}
	case KindPayload:
		if e.Transfer == "" || e.Bytes < 1 || e.Bytes > MaxBlock {
			return nil, fmt.Errorf("payload event of transfer %q with %d bytes, expected a transfer and 1 to %d", e.Transfer, e.Bytes, MaxBlock)
		}
	case KindSample:
		if e.Sample == nil || e.Transfer == "" {
			return nil, errors.New("sample event without sample or transfer")
		}
		return &e, e.Sample.check()
	case KindResult:
		if e.Result == nil || e.Transfer == "" {
			return nil, errors.New("result event without result or transfer")
		}
		e.Result.Digest = "" // not the driver's to say
		return &e, e.Result.check()
	case KindError:
		if !known(e.Code) {
			return nil, fmt.Errorf("error event with unknown code %q", e.Code)
		}
	default:
		return nil, fmt.Errorf("unknown event %q", e.Event)
	}
	return &e, nil
}

func known(c Code) bool {
	for _, k := range Codes {
		if c == k {
			return true
		}
	}
	return false
}

func (r *Result) check() error {
	if r.SizeBytes < 0 || r.ElapsedNS < 0 || r.ConnectNS < 0 {
		return fmt.Errorf("result with a negative value: size_bytes %d, elapsed_ns %d, connect_ns %d", r.SizeBytes, r.ElapsedNS, r.ConnectNS)
	}
	if r.Probe != nil {
		if err := r.Probe.Check(); err != nil {
			return err
		}
	}
	if err := r.checkPaths(); err != nil {
		return err
	}
	if r.Final != nil {
		return r.Final.check()
	}
	return nil
}
