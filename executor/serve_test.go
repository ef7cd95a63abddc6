package executor

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// standing is a runner whose server runs until it is killed, after it has
// reported one transfer.
type standing struct{ transfer string }

func (s standing) Start(_ context.Context, _ string, p *contract.Parameters) (Process, error) {
	r, w := io.Pipe()
	proc := &standingProcess{out: r, in: w, done: make(chan struct{})}
	go func() {
		enc := json.NewEncoder(w)
		enc.Encode(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "script"}})
		if p.Local.Port == 5001 {
			enc.Encode(contract.Event{Event: contract.KindConnected, Transfer: s.transfer})
			enc.Encode(contract.Event{Event: contract.KindResult, Transfer: s.transfer, Result: &contract.Result{SizeBytes: 1000, ElapsedNS: 1, Digest: strings.Repeat("0", 64)}})
		}
		<-proc.done
		w.Close()
	}()
	return proc, nil
}

type standingProcess struct {
	out  *io.PipeReader
	in   *io.PipeWriter
	done chan struct{}
}

func (p *standingProcess) Output() io.ReadCloser { return p.out }
func (p *standingProcess) Done() <-chan struct{} { return p.done }
func (p *standingProcess) Exit() Exit            { return Exit{} }
func (p *standingProcess) Log() string           { return "" }
func (p *standingProcess) Terminate()            { p.Kill() }
func (p *standingProcess) Stops() *Stops         { return nil }
func (p *standingProcess) Kill() {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
}

// The server's report of a transfer is what makes the leader's figure count, so
// it must be durable as soon as it is known: no later boundary of the serving
// side may be needed to write it.
func TestReceivedIsDurableAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "j")
		sheet := testSheet(t, 2, 1)
		j := openJournal(t, path, journal.Options{})
		defer j.Close()
		cfg := config(sheet, j, standing{runsheet.TransferID("r", 0, 1, 0).String()}, nil)
		cfg.Role = radio.RoleServer
		ctx, cancel := context.WithCancelCause(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, cfg) }()

		kept := func() bool {
			for _, r := range read(t, j) {
				if r.Type == journal.TypeReceived {
					return r.Seq <= j.Durable()
				}
			}
			return false
		}
		synctest.Wait()
		if !kept() {
			t.Error("the server's report of the transfer is not in the durable part of the journal")
		}
		cancel(ErrFinish)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}
