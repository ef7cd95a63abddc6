// What every driver needs of the driver contract, whatever its protocol:
// parameters, events, errors, the payload.

package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"syscall"
)

type endpoint struct {
	Address string `json:"address"`
	Port    int    `json:"port"`
}

// parameters is the document on standard input.
type parameters struct {
	Contract int      `json:"contract"`
	Role     string   `json:"role"`
	Local    endpoint `json:"local"`
	Remote   endpoint `json:"remote"`
	Device   string   `json:"device"`
	Transfer struct {
		ID         string `json:"id"`
		SizeBytes  int64  `json:"size_bytes"`
		DurationMS int64  `json:"duration_ms"`
	} `json:"transfer"`
	Options map[string]any `json:"options"`
	Limits  struct {
		ConnectMS  int64 `json:"connect_ms"`
		TransferMS int64 `json:"transfer_ms"`
	} `json:"limits"`
	SampleIntervalMS int64 `json:"sample_interval_ms"`

	options options
	id      [16]byte
}

const (
	maxSize     = 1 << 40
	maxDuration = 365 * 24 * 3600 * 1000 // ms
)

// readParameters reads the first line of standard input. The payload follows.
func readParameters(r *bufio.Reader) (*parameters, error) {
	b, err := r.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, failf(badParameters, "parameters: %w", err)
	}
	p := &parameters{}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, failf(badParameters, "parameters: %w", err)
	}
	if p.Contract != 2 {
		return nil, failf(badParameters, "parameters: contract version %d, this driver speaks 2", p.Contract)
	}
	if p.options, err = parseOptions(p.Options); err != nil {
		return nil, err
	}
	if p.SampleIntervalMS <= 0 {
		p.SampleIntervalMS = 100
	}
	switch p.Role {
	case "probe":
		return p, nil
	case "server":
		return p, p.Local.check("local")
	case "client":
		return p, p.checkClient()
	}
	return nil, failf(badParameters, "parameters: role %q, expected probe, server or client", p.Role)
}

func (e endpoint) check(field string) error {
	if a, err := netip.ParseAddr(e.Address); err != nil || a.Zone() != "" || e.Port < 1 || e.Port > 65535 {
		return failf(badParameters, "parameters: %s is %q port %d, expected an IP address and a port", field, e.Address, e.Port)
	}
	return nil
}

func (p *parameters) checkClient() error {
	if err := p.Remote.check("remote"); err != nil {
		return err
	}
	if a := p.Local.Address; a != "" {
		local, err := netip.ParseAddr(a)
		if remote, _ := netip.ParseAddr(p.Remote.Address); err != nil || local.Is4() != remote.Is4() {
			return failf(badParameters, "parameters: local.address %q, expected an IP address of the family of %q", a, p.Remote.Address)
		}
	}
	t := &p.Transfer
	id, err := hex.DecodeString(t.ID)
	if err != nil || len(id) != len(p.id) || hex.EncodeToString(id) != t.ID {
		return failf(badParameters, "parameters: transfer.id %q, expected 32 lower-case hexadecimal digits", t.ID)
	}
	copy(p.id[:], id)
	if t.SizeBytes < 0 || t.SizeBytes > maxSize || t.DurationMS < 0 || t.DurationMS > maxDuration {
		return failf(badParameters, "parameters: transfer of %d bytes and %d ms", t.SizeBytes, t.DurationMS)
	}
	return nil
}

// Error codes of the contract.
const (
	unsupported       = "unsupported"
	badParameters     = "bad-parameters"
	listenFailed      = "listen-failed"
	connectRefused    = "connect-refused"
	connectTimeout    = "connect-timeout"
	unreachable       = "unreachable"
	reset             = "reset"
	transferTimeout   = "transfer-timeout"
	protocolViolation = "protocol-violation"
	aborted           = "aborted"
	internal          = "internal"
)

// failure is an error with its code.
type failure struct {
	code string
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func failf(code, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...)}
}

// codeOf finds the code of an error; late is that of a limit that passed.
func codeOf(err error, late string) string {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return late
	case errors.Is(err, syscall.ECONNREFUSED):
		return connectRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN), errors.Is(err, syscall.EADDRNOTAVAIL):
		return unreachable
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ETIMEDOUT):
		return reset
	}
	return internal
}

type info struct {
	Implementation string              `json:"implementation"`
	Choices        map[string][]string `json:"choices,omitempty"`
	Detail         map[string]string   `json:"detail,omitempty"`
}

// sample has the fields that are set; add those that the protocol knows.
type sample struct {
	ElapsedNS   int64              `json:"elapsed_ns"`
	SentBytes   int64              `json:"sent_bytes"`
	AckedBytes  *int64             `json:"acked_bytes,omitempty"`
	CwndBytes   *int64             `json:"cwnd_bytes,omitempty"`
	SRTTUS      *int64             `json:"srtt_us,omitempty"`
	RTOUS       *int64             `json:"rto_us,omitempty"`
	Retransmits *int64             `json:"retransmits,omitempty"`
	More        map[string]float64 `json:"more,omitempty"`
}

type result struct {
	SizeBytes int64   `json:"size_bytes"`
	ElapsedNS int64   `json:"elapsed_ns"`
	ConnectNS int64   `json:"connect_ns,omitempty"`
	Final     *sample `json:"final"`
}

type event struct {
	Event     string  `json:"event"`
	Transfer  string  `json:"transfer,omitempty"`
	Bytes     int     `json:"bytes,omitempty"`
	Info      *info   `json:"info,omitempty"`
	ConnectNS int64   `json:"connect_ns,omitempty"`
	Sample    *sample `json:"sample,omitempty"`
	Result    *result `json:"result,omitempty"`
	Code      string  `json:"code,omitempty"`
	Message   string  `json:"message,omitempty"`
}

var output sync.Mutex

// say writes one event, as one line and at once.
func say(e event) { write(e, nil) }

// sayPayload hands over payload that has arrived.
func sayPayload(transfer string, b []byte) {
	write(event{Event: "payload", Transfer: transfer, Bytes: len(b)}, b)
}

// write writes the line of an event, and the payload that it announces.
func write(e event, payload []byte) {
	b, err := json.Marshal(e)
	if err != nil {
		fmt.Fprintln(os.Stderr, "event:", err)
		return
	}
	output.Lock()
	defer output.Unlock()
	if _, err := os.Stdout.Write(append(append(b, '\n'), payload...)); err != nil {
		fmt.Fprintln(os.Stderr, "standard output:", err)
	}
}

// fail writes an error event and returns the exit code for it.
func fail(transfer, late string, err error) int {
	code := codeOf(err, late)
	message := err.Error()
	if len(message) > 2000 {
		message = message[:2000]
	}
	say(event{Event: "error", Transfer: transfer, Code: code, Message: message})
	if code == unsupported {
		return 127
	}
	return 1
}
