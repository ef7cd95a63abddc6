package protocoltest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"linktrial/protocols/contract"
)

// Sizes in bytes.
const (
	kib = 1 << 10
	mib = 1 << 20
	// endless is a payload that no driver gets through while a check runs.
	endless = 1 << 38
)

// checks is the suite, in order. A new one gets the sentences of
// docs/driver-contract.md that it holds a driver to, by their numbers there;
// go test ./protocols/protocoltest -run TestSentences -update writes the table at
// the end of README.md.
var checks = slices.Concat(startChecks, transferChecks, probeChecks, markChecks, relayChecks, endChecks)

// startChecks are those of every driver, before the others.
var startChecks = []check{
	{"manifest", "driver.yaml can be read and names a program that is there", checkManifest, first, []string{"F1", "F2", "F3", "F4", "F5"}},
	{"query", "the query says what the driver is, or why it cannot run here", checkQuery, first, []string{"R1", "E9"}},
	{"bad-parameters", "what is not a document of this contract is refused with bad-parameters", checkBadParameters, usual, []string{"P1", "P4", "P5", "P9", "P13", "C3"}},
	{"unknown-option", "an option that is not declared, or of the wrong type, is refused with bad-parameters", checkUnknownOption, usual, []string{"P3", "C3"}},
	{"unsupported", "what this node cannot do ends with exit code 127 and the reason", checkUnsupported, anywhere, []string{"C2"}},
}

// transferChecks are those of client and server.
var transferChecks = []check{
	{"port-taken", "a second server on the same port ends with listen-failed", checkPortTaken, usual, []string{"P11", "C4"}},
	{"size-0", "a transfer of nothing is acknowledged all the same", checkSize(0), usual, []string{"W1", "W3", "E5", "E6", "E10", "S8"}},
	{"size-1", "a transfer of 1 byte", checkSize(1), usual, []string{"W1", "W3", "W4", "W10", "E10"}},
	{"size-1KiB", "a transfer of about 1 KiB", checkSize(kib), usual, []string{"W1", "W3", "W4", "W10", "E10"}},
	{"size-1MiB", "a transfer of about 1 MiB", checkSize(mib), usual, []string{"W1", "W3", "W4", "W10", "E10", "S4"}},
	{"size-64MiB", "a transfer of about 64 MiB (quick: 16 MiB)", checkLarge, usual, []string{"W1", "W3", "W4", "W10", "E10", "S4"}},
	{"duration", "a transfer that a time bounds ends near it, or with its size, and both ends agree on what was sent", checkDuration, usual, []string{"D1", "D2", "D5", "D8"}},
	{"duration-refused", "a time that is none is refused", checkDurationRefused, usual, []string{"P4"}},
	{"samples", "samples come at the interval, never go back, and the last one sums up", checkSamples, usual, []string{"S2", "S4", "S7", "S8", "S10"}},
	{"sample-share", "samples come at the interval for as long as the transfer lasts: at least half of them, on however busy a machine", checkSampleShare, usual, []string{"S5"}},
	{"sample-interval", "the interval doubles after 500 samples and after every 250 more; over a link with losses no counter goes back", checkSampleInterval, usual, []string{"S3", "S6", "S7"}},
	{"sample-counts", "samples count the whole payload, at most 64 KiB behind what was sent, acknowledged and received by then", checkSampleCounts, usual, []string{"S9"}},
	{"connect-time", "connect_ns is the time from the first attempt until the server's first byte, and elapsed_ns begins after it", checkConnectTime, usual, []string{"W2", "E11", "E12"}},
	{"clock", "both ends measure the transfer, and its samples, in real time", checkClock, usual, []string{"E1", "E11", "E12", "E13"}},
	{"clock-duration", "both ends measure a transfer that a time bounds in real time", checkClockDuration, usual, []string{"D5", "E11", "E12", "E13"}},
	{"clock-end", "the client's clock runs until the server's answer has arrived, the server's until the last byte", checkClockEnd, usual, []string{"E11", "E12"}},
	{"hundred", "100 transfers (quick: 20) on one listener, one after another", checkHundred, usual, []string{"R2"}},
	{"concurrent", "several transfers at once on one listener, none waits for another", checkConcurrent, usual, []string{"R3"}},
	{"late-server", "without a server the client gives up within its limit; once there is one, it works", checkLateServer, usual, []string{"L1", "C6"}},
	{"client-killed", "a client killed in its transfer: the server serves the next, and reports the loss within its limit", checkClientKilled, usual, []string{"R4", "C8"}},
	{"server-killed", "a server killed in a transfer: the client ends with an error within its limit", checkServerKilled, usual, []string{"C8", "L4"}},
	{"transfer-limit", "a transfer that takes too long ends with transfer-timeout", checkTransferLimit, usual, []string{"L4", "C9"}},
	{"connect-limit", "a server that cannot be reached ends with connect-timeout within the limit", checkConnectLimit, usual, []string{"L1", "L2", "C6"}},
	{"link-cut", "a link cut for 30 s (quick: 2 s): the transfer goes on after it, and the server serves the next", checkLinkCut, usual, []string{"R4", "L6"}},
	{"stop-client", "SIGTERM: the client ends at once with aborted", checkStopClient, usual, []string{"R9", "C12", "E1"}},
	{"stop-server", "SIGTERM: the server ends at once with exit code 0, a running transfer with aborted", checkStopServer, usual, []string{"R8", "C12"}},
	{"local-address", "the server listens at local.address alone, the client sends from it; a client without one uses any", checkLocalAddress, apart, []string{"P6", "P7"}},
	{"unknown-fields", "fields of the document that the contract does not have are ignored, in all its objects", checkUnknownFields, apart, []string{"P2"}},
	{"refused", "where the network says that no server listens, the client says connect-refused at once (a protocol over UDP may not learn of it: connect-timeout at its limit)", checkRefused, apart, []string{"C5"}},
	{"no-route", "where no route leads to the server, the client says unreachable at once", checkNoRoute, apart, []string{"C7"}},
	{"no-such-address", "with a local.address that the node does not have, a server ends with listen-failed, a client with unreachable", checkNoSuchAddress, apart, []string{"P11", "P12"}},
	{"ipv6", "a transfer between addresses of IPv6; or unsupported, where the protocol has none", checkIPv6, apart, []string{"P9"}},
	{"ready-open", "a server's port is open when it says ready", checkReadyOpen, apart, []string{"R5"}},
	{"stop-early", "SIGTERM before ready ends a driver at once", checkStopEarly, apart, []string{"R10"}},
	{"prompt-exit", "a client exits after its result or error as soon as the patience allows", checkPromptExit, apart, []string{"R6"}},
	{"first-byte-limit", "a client that is connected and gets no R ends with connect-timeout at limits.connect_ms", checkFirstByteLimit, apart, []string{"L1", "C6"}},
	{"header-limit", "a server ends a connection without a header after limits.connect_ms", checkHeaderLimit, apart, []string{"L3", "E8"}},
	{"silent-peer", "a link cut for good in a transfer: both ends say transfer-timeout after limits.transfer_ms, not sooner and not later", checkSilentPeer, apart, []string{"L4", "L5", "C9"}},
	{"server-limit", "a server ends a transfer at its limits.transfer_ms, and its client notices", checkServerBreaksOff, apart, []string{"L5", "W8", "C8", "C9"}},
	{"answer-kept", "a server keeps its end open until the client has closed, so that its answer survives an outage", checkAnswerKept, apart, []string{"W6", "W7"}},
	{"broken-off", "of a transfer that failed nothing is sent any more: after SIGTERM, SIGKILL and the limit", checkBrokenOff, apart, []string{"R12", "W8"}},
	{"lossy-link", "a transfer of about 64 KiB over a slow link that loses, doubles and reorders packets", checkLossyLink, apart, []string{"W1"}},
	{"long-outage", "a link cut for 75 s (quick: 12 s) ends no transfer whose limit has not passed", checkLongOutage, apart, []string{"L6"}},
	{"idle-server", "a server without a transfer takes no processor time, and wakes up at most 10 times a second", checkIdleServer, usual, []string{"R13"}},
}

// endChecks look at what the processes of all checks did.
var endChecks = []check{
	{"output", "nothing but valid events on standard output, and the payload that they count", checkOutput, anywhere, []string{"C1", "C14", "E1", "E2", "E3", "W11", "W12", "Y16"}},
	{"exit-codes", "exit code and events agree", checkExitCodes, anywhere, []string{"R7", "E7"}},
	{"children", "no process is left behind", checkChildren, anywhere, []string{"R11"}},
}

// Limits of a driver in checks that are about something else; most of them draw theirs.
const (
	connectMS  = 10_000
	transferMS = 120_000
)

// drawLimits draws limits as plans have them, of whole seconds and never shorter than those.
func drawLimits() contract.Limits {
	return contract.Limits{ConnectMS: connectMS + 1000*rand.Int64N(6), TransferMS: transferMS + 1000*rand.Int64N(61)}
}

func (s *suite) params(role contract.Role) *contract.Parameters {
	p := &contract.Parameters{
		Contract: contract.Version, Role: role, Options: map[string]any{},
		Limits: s.limits, SampleIntervalMS: 100,
	}
	if s.target.Manifest != nil {
		for _, o := range s.target.Manifest.Options {
			if o.Default != nil {
				p.Options[o.Name] = o.Default
			}
		}
	}
	maps.Copy(p.Options, s.instead)
	maps.Copy(p.Options, s.o.Values)
	p.Local.Address, p.Device = s.net.address(role)
	return p
}

// port gives every server one of its own.
func (s *suite) port() int {
	return s.net.port()
}

func (s *suite) serverParams() *contract.Parameters {
	p := s.params(contract.RoleServer)
	p.Local.Port = s.port()
	return p
}

// serve starts a server and waits until it is ready.
func (s *suite) serve(ctx context.Context, p *contract.Parameters) (*proc, error) {
	srv, err := s.begin(p)
	if err != nil {
		return nil, err
	}
	_, err = srv.await(ctx, s.o.waits.ready, "ready event", kind(contract.KindReady))
	return srv, err
}

func (s *suite) clientParams(port int, size int64) *contract.Parameters {
	p := s.params(contract.RoleClient)
	p.Remote.Address, _ = s.net.address(contract.RoleServer)
	p.Remote.Port = port
	s.transfers++
	p.Transfer = contract.Transfer{ID: s.transferID(s.transfers).String(), SizeBytes: size}
	if s.probes() {
		p.Transfer.Seed = 0x9E3779B97F4A7C15 * s.transfers
	}
	return p
}

// transferID is the identity of a transfer: a part of a digest, as in runs.
func (s *suite) transferID(n uint64) contract.TransferID {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte("identity "), s.secret...), n))
	return contract.TransferID(sum[:len(contract.TransferID{})])
}

// within bounds a whole client: its own limits, and what Linktrial waits beyond each.
func (s *suite) within(p *contract.Parameters) time.Duration {
	return time.Duration(p.Limits.ConnectMS+p.Limits.TransferMS)*time.Millisecond + 2*s.o.waits.limit + s.o.waits.exit
}

// wellDone waits for a client that must succeed and holds all it said, and
// what the server said of the transfer, against the contract.
func (s *suite) wellDone(ctx context.Context, srv, c *proc, p *contract.Parameters) (*contract.Result, error) {
	if err := c.wait(ctx, s.within(p)); err != nil {
		return nil, err
	}
	outside := time.Since(c.began)
	id := p.Transfer.ID
	if c.code != contract.ExitOK {
		return nil, fmt.Errorf("the client ended with %s%s%s", c.ending(), c.lastError(), c.tail())
	}
	r, err := clientResult(c, p, outside)
	if err != nil {
		return nil, err
	}
	got, err := srv.await(ctx, s.o.Patience, "result for the transfer", about(contract.KindResult, id))
	if err != nil {
		return nil, err
	}
	if srv.find(about(contract.KindConnected, id)) == nil {
		return nil, errors.New("the server gave no connected event for the transfer")
	}
	if err := order(srv.all(func(e *seen) bool { return e.Transfer == id || e.Event.Event == contract.KindReady }), id); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if time.Duration(got.Result.ElapsedNS) > outside {
		return nil, fmt.Errorf("the server reports %s for the transfer, but the client's whole process took %s", time.Duration(got.Result.ElapsedNS), outside)
	}
	if err := sameTransfer(p, r, got.Result); err != nil || s.probes() {
		return r, err
	}
	size, digest := srv.arrived(id)
	if size != r.SizeBytes {
		return r, fmt.Errorf("the server handed over %d bytes of payload before its result, expected %d", size, r.SizeBytes)
	}
	if want := s.source(id, size).Digest(size); digest != want {
		return r, fmt.Errorf("the payload that the server handed over has the digest %s, that of the client's standard input %s", digest, want)
	}
	return r, nil
}

// clientResult checks the events of a client that has ended, after outside at
// most, and returns its result.
func clientResult(c *proc, p *contract.Parameters, outside time.Duration) (*contract.Result, error) {
	id := p.Transfer.ID
	ready, connected, result := c.find(kind(contract.KindReady)), c.find(about(contract.KindConnected, id)), c.find(about(contract.KindResult, id))
	switch {
	case ready == nil:
		return nil, errors.New("the client gave no ready event")
	case connected == nil:
		return nil, errors.New("the client gave no connected event for the transfer")
	case result == nil:
		return nil, errors.New("the client gave no result for the transfer")
	case len(c.all(kind(contract.KindResult))) > 1:
		return nil, errors.New("the client gave more than one result")
	}
	if err := order(c.all(func(e *seen) bool { return e.Event.Event != contract.KindError }), id); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	r := result.Result
	// The process ran longer than any time that it reports, on however slow a machine.
	if time.Duration(r.ElapsedNS)+time.Duration(r.ConnectNS) > outside {
		return nil, fmt.Errorf("the client reports %s to connect and %s for the transfer, but the whole process took %s",
			time.Duration(r.ConnectNS), time.Duration(r.ElapsedNS), outside)
	}
	if p.Transfer.SizeBytes > 0 && r.ElapsedNS == 0 {
		return nil, errors.New("the client reports a transfer that took no time")
	}
	if connected.ConnectNS != r.ConnectNS || r.ConnectNS <= 0 {
		return nil, fmt.Errorf("connect_ns is %d in the connected event and %d in the result, expected one positive value", connected.ConnectNS, r.ConnectNS)
	}
	return r, nil
}

// sameTransfer checks that both ends report the payload that was asked for.
func sameTransfer(p *contract.Parameters, client, server *contract.Result) error {
	// A transfer that is bounded by time has the size that the client reports.
	size := p.Transfer.SizeBytes
	if p.Transfer.DurationMS > 0 {
		if size = client.SizeBytes; size > p.Transfer.SizeBytes {
			return fmt.Errorf("the client's result says %d bytes, the transfer was of %d at most", size, p.Transfer.SizeBytes)
		}
	}
	if server.SizeBytes != client.SizeBytes {
		return fmt.Errorf("the server's result says %d bytes, the client's %d", server.SizeBytes, client.SizeBytes)
	}
	for _, x := range []struct {
		who string
		r   *contract.Result
	}{{"client", client}, {"server", server}} {
		if x.r.SizeBytes != size {
			return fmt.Errorf("the %s's result says %d bytes, expected %d", x.who, x.r.SizeBytes, size)
		}
		if x.r.Final == nil {
			return fmt.Errorf("the %s's result has no final sample", x.who)
		}
		if x.r.Final.SentBytes != size {
			return fmt.Errorf("the %s's final sample counts %d bytes of %d", x.who, x.r.Final.SentBytes, size)
		}
		if a := x.r.Final.AckedBytes; a != nil && *a > size {
			return fmt.Errorf("the %s's final sample has %d bytes acknowledged of %d", x.who, *a, size)
		}
	}
	return nil
}

// order checks ready, connected, samples, result: each before the next.
func order(es []seen, id string) error {
	stage := 0
	stages := []contract.Kind{contract.KindReady, contract.KindConnected, contract.KindSample, contract.KindResult}
	for _, e := range es {
		at := 0
		for i, k := range stages {
			if e.Event.Event == k {
				at = i
			}
		}
		if at < stage {
			return fmt.Errorf("a %s event after a %s event", e.Event.Event, stages[stage])
		}
		if at > 0 && e.Transfer != id {
			return fmt.Errorf("a %s event names transfer %q, expected %q", e.Event.Event, e.Transfer, id)
		}
		stage = at
	}
	return nil
}

// transfer is one whole transfer that must go well.
func (s *suite) transfer(ctx context.Context, srv *proc, port int, size int64) (*contract.Result, error) {
	p := s.clientParams(port, size)
	c, err := s.begin(p)
	if err != nil {
		return nil, err
	}
	return s.wellDone(ctx, srv, c, p)
}

// failure waits for a client that must fail with one of the codes.
func (s *suite) failure(ctx context.Context, c *proc, within time.Duration, codes ...contract.Code) (contract.Code, error) {
	if err := c.wait(ctx, within); err != nil {
		return "", err
	}
	words := make([]string, len(codes))
	for i, k := range codes {
		words[i] = string(k)
	}
	e := c.find(kind(contract.KindError))
	if e == nil {
		return "", fmt.Errorf("the %s ended with %s and no error event, expected %s%s", c.name, c.ending(), strings.Join(words, " or "), c.tail())
	}
	for _, k := range codes {
		if e.Code == k {
			want := contract.ExitFailed
			if k == contract.CodeUnsupported {
				want = contract.ExitUnsupported
			}
			if c.code != want {
				return k, fmt.Errorf("the %s said %s and ended with %s, expected exit code %d", c.name, k, c.ending(), want)
			}
			if e.Message == "" {
				return k, fmt.Errorf("the %s said %s without a message", c.name, k)
			}
			return k, nil
		}
	}
	return e.Code, fmt.Errorf("the %s said %s (%s), expected %s", c.name, e.Code, e.Message, strings.Join(words, " or "))
}
