//go:build kernels

package inside

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/payload"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// program is one driver process.
type program struct {
	cmd    *exec.Cmd
	events chan *contract.Event
	source *payload.Source      // of a client of a transfer
	handed map[string]hash.Hash // of a server
	log    bytes.Buffer
}

// launch starts a driver in a namespace.
func launch(driver, ns string, p *contract.Parameters) (*program, error) {
	document, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(drivers, driver)
	g := &program{cmd: exec.Command(filepath.Join(dir, driver)), events: make(chan *contract.Event, 1<<12), handed: map[string]hash.Hash{}}
	if p.Role == contract.RoleClient && p.Transfer.Seed == 0 {
		g.source = payload.NewSource(payload.NewKey(nil, 1), p.Transfer.SizeBytes)
	}
	g.cmd.Dir, g.cmd.Env, g.cmd.Stdin, g.cmd.Stderr = dir, contract.Environment(os.LookupEnv), payload.Input(document, g.source), &g.log
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	path := ""
	if ns != "" {
		path = namespace.Path(ns)
	}
	if err := process.StartIn(g.cmd, path); err != nil {
		return nil, fmt.Errorf("start the driver %s: %w", driver, err)
	}
	go g.hear(out)
	return g, nil
}

// hear reads what a driver writes, to its end, and completes results as Linktrial does.
func (g *program) hear(out io.Reader) {
	defer close(g.events)
	for o := contract.NewOutput(out); ; {
		e, _, block, err := o.Next()
		if err != nil {
			return
		}
		if e.Event == contract.KindPayload {
			if g.handed[e.Transfer] == nil {
				g.handed[e.Transfer] = sha256.New()
			}
			g.handed[e.Transfer].Write(block)
			continue
		}
		if h := g.handed[e.Transfer]; e.Result != nil && g.source != nil {
			e.Result.Digest = g.source.Digest(e.Result.SizeBytes)
		} else if e.Result != nil && h != nil {
			e.Result.Digest = hex.EncodeToString(h.Sum(nil))
		}
		g.events <- e
	}
}

// failure is an error that a driver reported.
type failure struct {
	code    contract.Code
	message string
}

func (e *failure) Error() string { return fmt.Sprintf("%s: %s", e.code, e.message) }

// until returns the first event of a kind; an error event is an error.
func (g *program) until(k contract.Kind) (*contract.Event, error) {
	for e := range g.events {
		switch e.Event {
		case k:
			return e, nil
		case contract.KindError:
			return nil, &failure{e.Code, e.Message}
		}
	}
	return nil, fmt.Errorf("no %s event; the log: %s", k, bytes.TrimSpace(g.log.Bytes()))
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
// client's result. What the server handed over is what the client was given.
func transfer(ctx context.Context, w *way, server *program, driver string, options map[string]any, size int64, seed uint64) (*contract.Result, error) {
	if err := w.begin(ctx, seed); err != nil {
		return nil, err
	}
	p := parameters(contract.RoleClient, options)
	p.Transfer = contract.Transfer{ID: fmt.Sprintf("%032x", seed), SizeBytes: size}
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
