//go:build kernels

package inside

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// program is one driver process.
type program struct {
	cmd    *exec.Cmd
	events *bufio.Scanner
	log    bytes.Buffer
}

// launch starts a driver in a namespace.
func launch(driver, ns string, p *contract.Parameters) (*program, error) {
	document, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(drivers, driver)
	g := &program{cmd: exec.Command(filepath.Join(dir, driver))}
	g.cmd.Dir, g.cmd.Env, g.cmd.Stdin, g.cmd.Stderr = dir, contract.Environment(os.LookupEnv), bytes.NewReader(document), &g.log
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	g.events = bufio.NewScanner(out)
	g.events.Buffer(nil, contract.MaxLine+1)
	path := ""
	if ns != "" {
		path = namespace.Path(ns)
	}
	if err := process.StartIn(g.cmd, path); err != nil {
		return nil, fmt.Errorf("start the driver %s: %w", driver, err)
	}
	return g, nil
}

// failure is an error that a driver reported.
type failure struct {
	code    contract.Code
	message string
}

func (e *failure) Error() string { return fmt.Sprintf("%s: %s", e.code, e.message) }

// until returns the first event of a kind; an error event is an error.
func (g *program) until(k contract.Kind) (*contract.Event, error) {
	for g.events.Scan() {
		e, err := contract.ParseEvent(g.events.Bytes())
		switch {
		case err != nil:
			return nil, err
		case e.Event == k:
			return e, nil
		case e.Event == contract.KindError:
			return nil, &failure{e.Code, e.Message}
		}
	}
	err := g.events.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("no %s event: %w; the log: %s", k, err, bytes.TrimSpace(g.log.Bytes()))
}

// stop ends a server in order, and waits.
func (g *program) stop() {
	_ = g.cmd.Process.Signal(unix.SIGTERM)
	_ = g.cmd.Wait()
}

// parameters of both ends of a transfer.
func parameters(role contract.Role, options map[string]any) *contract.Parameters {
	p := &contract.Parameters{
		Contract: contract.Version, Role: role, Options: options, SampleIntervalMS: 1000,
		Limits: contract.Limits{ConnectMS: 30_000, TransferMS: 600_000},
	}
	switch role {
	case contract.RoleServer:
		p.Local = contract.Endpoint{Address: serverAddress, Port: 7000}
		p.Device = device
	case contract.RoleClient:
		p.Local.Address = clientAddress
		p.Remote = contract.Endpoint{Address: serverAddress, Port: 7000}
		p.Device = device
	}
	return p
}

// serve starts a server, which is ready when this returns.
func serve(w *way, driver string, options map[string]any) (*program, error) {
	server, err := launch(driver, w.server, parameters(contract.RoleServer, options))
	if err != nil {
		return nil, err
	}
	if _, err := server.until(contract.KindReady); err != nil {
		server.stop()
		return nil, fmt.Errorf("server: %w", err)
	}
	return server, nil
}

// transfer carries one payload over a way, from driver to driver, and returns the
// client's result. The server has verified the payload.
func transfer(ctx context.Context, w *way, server *program, driver string, options map[string]any, size int64, seed uint64) (*contract.Result, error) {
	if err := w.begin(ctx, seed); err != nil {
		return nil, err
	}
	p := parameters(contract.RoleClient, options)
	p.Transfer = contract.Transfer{ID: fmt.Sprintf("%032x", seed), SizeBytes: size, Seed: seed}
	client, err := launch(driver, w.client, p)
	if err != nil {
		return nil, err
	}
	done, err := client.until(contract.KindResult)
	if err = errors.Join(err, client.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	got, err := server.until(contract.KindResult)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if got.Result.Digest != done.Result.Digest {
		return nil, fmt.Errorf("the server's digest is %s, the client's %s", got.Result.Digest, done.Result.Digest)
	}
	return done.Result, nil
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }
