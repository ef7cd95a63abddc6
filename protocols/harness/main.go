package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"linktrial/protocols/contract"
)

// maxDocument bounds the document on standard input, in bytes.
const maxDocument = 1 << 20

// inputBuffer is how much of standard input is read at a time, in bytes, until the
// payload is read in larger pieces.
const inputBuffer = 16 << 10

// Drive is a driver's whole main function; it does not return. m is what its
// driver.yaml says of roles, features and options: a program outside of this
// repository has no reader of YAML. SIGTERM and SIGINT end it in order once the
// parameters have been read.
func Drive(m *contract.Manifest, d Driver) {
	os.Exit(execute(m, d, os.Stdin, os.Stdout, os.Stderr, signalled))
}

func signalled() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
}

// execute returns the exit code; begin gives the context that a signal ends.
func execute(m *contract.Manifest, d Driver, stdin io.Reader, stdout, stderr io.Writer, begin func() (context.Context, context.CancelFunc)) int {
	log := newLogger(stderr)
	ev := &events{w: stdout, log: log}
	in := bufio.NewReaderSize(stdin, inputBuffer)
	p, err := readParameters(m, in)
	if err != nil {
		return ev.failed("", codeOf(err, contract.CodeBadParameters), err)
	}
	ctx, stop := begin()
	defer stop()

	info, err := d.Query(ctx, p)
	if err != nil {
		return ev.failed(p.Transfer.ID, codeOf(err, contract.CodeUnsupported), err)
	}
	r := run{Driver: d, p: p, info: info, in: in, ev: ev, log: log}
	switch {
	case d.Packets == nil:
	case p.Role == contract.RoleServer:
		return r.packetServer(ctx)
	case p.Role == contract.RoleClient:
		return r.packetClient(ctx)
	}
	switch p.Role {
	case contract.RoleServer:
		return r.server(ctx)
	case contract.RoleClient:
		return r.client(ctx)
	case contract.RoleRelay:
		return r.relay(ctx)
	default:
		ev.write(&contract.Event{Event: contract.KindReady, Info: info})
		return contract.ExitOK
	}
}

func newLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func readParameters(m *contract.Manifest, in *bufio.Reader) (*contract.Parameters, error) {
	b, err := readDocument(in)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	p, err := contract.ParseParameters(b)
	if err != nil {
		return nil, err
	}
	if !m.Plays(p.Role) {
		return nil, fmt.Errorf("parameters: role %s, this driver has %v", p.Role, m.AllRoles())
	}
	if p.Role != contract.RoleClient {
		p.Transfer = contract.Transfer{} // of no meaning there, and not to be repeated in errors
	}
	if f, lacks := m.Lacks(p); lacks {
		return nil, Unsupported("parameters: %s, and the driver's manifest does not have the feature", f)
	}
	p.Options, err = m.CheckOptions(p.Options)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	return p, nil
}

// readDocument reads the first line of standard input. What follows is the payload.
func readDocument(in *bufio.Reader) ([]byte, error) {
	var document []byte
	for {
		part, err := in.ReadSlice('\n')
		document = append(document, part...)
		switch {
		case len(document) > maxDocument:
			return nil, fmt.Errorf("longer than %d bytes", maxDocument)
		case err == nil, errors.Is(err, io.EOF):
			return document, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// run is one driver process with its parameters.
type run struct {
	Driver
	p    *contract.Parameters
	info *contract.Info
	in   io.Reader // the payload, of a client
	ev   *events
	log  *slog.Logger
}

// after is the deadline ms after t; none where there is no limit.
func after(t time.Time, ms int64) time.Time {
	if ms <= 0 || ms > int64(time.Duration(1<<63-1)/time.Millisecond) {
		return time.Time{}
	}
	return t.Add(time.Duration(ms) * time.Millisecond)
}

// interrupt makes every wait on c end when ctx does, until the returned
// function is called. Whoever sets a deadline afterwards must look at ctx again.
func interrupt(ctx context.Context, c Conn) (release func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}

// setDeadline sets a deadline without undoing an interruption.
func setDeadline(ctx context.Context, c Conn, t time.Time) error {
	if err := c.SetDeadline(t); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errStopped
	}
	return nil
}

var errStopped = Failf(contract.CodeAborted, "SIGTERM while the transfer ran")

// settle gives an error the code that the circumstances call for: what fails
// after a signal is aborted, what meets its deadline has the given code.
func settle(ctx context.Context, err error, late contract.Code, message string) error {
	var f *Failure
	switch {
	case ctx.Err() != nil:
		return errStopped
	case errors.As(err, &f):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Failf(late, "%s", message)
	default:
		return &Failure{Code: codeOf(err, contract.CodeInternal), Err: err}
	}
}
