package trust

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"linktrial/executor"
	"linktrial/executor/runsheet"
	"linktrial/internal/driverdigest"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// engine has images under names that can move on.
type engine struct {
	named, pinned map[string]driverdigest.Digest
	started       int
	fails         error
}

func (e *engine) Pin(context.Context) error {
	for name, d := range e.named {
		e.pinned[name] = d
	}
	return e.fails
}

func (e *engine) Digest(_ context.Context, protocol string) (driverdigest.Digest, error) {
	d, ok := e.pinned[protocol]
	if !ok {
		return "", executor.ErrNoDriver
	}
	return d, nil
}

func (e *engine) Start(context.Context, string, *contract.Parameters, io.Reader) (executor.Process, error) {
	e.started++
	return nil, errors.New("not started in this test")
}

// An image whose name has moved on since the agent looked is refused before the
// run begins, and not by the run's first start.
func TestDriversAreCheckedAtEachStart(t *testing.T) {
	e := &engine{named: map[string]driverdigest.Digest{"moving": "image@sha256:new"}, pinned: map[string]driverdigest.Digest{"moving": "image@sha256:old"}}
	g := func(accepts string) *Guard {
		return &Guard{Runner: e, Drivers: e, Sheet: &runsheet.Sheet{Treatments: []runsheet.Treatment{{Name: "t", Protocol: "moving", Digests: []string{accepts}}}}}
	}
	err := g("image@sha256:old").CheckAll(t.Context(), radio.RoleServer)
	if err == nil || !strings.Contains(err.Error(), "is image@sha256:new and the run sheet names image@sha256:old") {
		t.Errorf("the earlier image is found good: %v", err)
	}
	e.pinned["moving"] = "image@sha256:old"
	if err := g("image@sha256:new").CheckAll(t.Context(), radio.RoleServer); err != nil {
		t.Errorf("the image of now is refused: %v", err)
	}
	if d, _ := e.Digest(t.Context(), "moving"); d != "image@sha256:new" {
		t.Errorf("%s would run", d)
	}
	e.fails = errors.New("engine is gone")
	if err := g("image@sha256:new").CheckAll(t.Context(), radio.RoleServer); err == nil || !strings.HasPrefix(err.Error(), "refused: ") || !strings.Contains(err.Error(), "engine is gone") {
		t.Errorf("a look that fails: %v", err)
	}
	if e.started != 0 {
		t.Errorf("%d drivers were started", e.started)
	}
}

// folders are drivers in folders, of which one has written into its own.
type folders struct{ engine }

func (*folders) Newest(string) (string, time.Time) {
	return "__pycache__/x.pyc", time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)
}

// The refusal of a driver names the file that may have made it another one.
func TestRefusalNamesTheNewestFile(t *testing.T) {
	e := &folders{engine{pinned: map[string]driverdigest.Digest{"mine": "sha256:b"}}}
	g := &Guard{Runner: e, Drivers: e, Sheet: &runsheet.Sheet{Treatments: []runsheet.Treatment{{Name: "t", Protocol: "mine", Digests: []string{"sha256:a"}}}}}
	_, err := g.Start(t.Context(), "mine", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "changed last is __pycache__/x.pyc, at 2026-11-22T09:30:00Z") {
		t.Errorf("error %v", err)
	}
}

// ran is a process that has ended.
type ran struct{ executor.Process }

// replacing is a runner whose driver may be replaced after it was started.
type replacing struct{ folders }

func (*replacing) Start(context.Context, string, *contract.Parameters, io.Reader) (executor.Process, error) {
	return ran{}, nil
}

// A driver that is replaced after the last look before its attempt, when a script or a
// module may not have been read yet, is told from one that stayed what it was.
func TestReplacedWhileItRan(t *testing.T) {
	e := &replacing{folders{engine{pinned: map[string]driverdigest.Digest{"mine": "sha256:a"}}}}
	g := &Guard{Runner: e, Drivers: e, Sheet: &runsheet.Sheet{Treatments: []runsheet.Treatment{{Name: "t", Protocol: "mine", Digests: []string{"sha256:a"}}}}}
	p, err := g.Start(t.Context(), "mine", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := p.(executor.Checked)
	if text := c.Changed(); text != "" {
		t.Errorf("of one that nobody replaced: %s", text)
	}
	e.pinned["mine"] = "sha256:b"
	if text, want := c.Changed(), "driver mine was replaced while it ran: it is sha256:b now (the file of its folder that changed last is __pycache__/x.pyc, at 2026-11-22T09:30:00Z), and the run sheet names sha256:a"; text != want {
		t.Errorf("%q, expected %q", text, want)
	}
}

// stopping is an engine that answers only when nobody waits for it any more.
type stopping struct{ engine }

func (*stopping) Digest(ctx context.Context, _ string) (driverdigest.Digest, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// A start that is cut short, as when a run ends, does not refuse the driver.
func TestCheckThatIsCutShortRefusesNothing(t *testing.T) {
	e := &stopping{}
	g := &Guard{Runner: e, Drivers: e, Sheet: &runsheet.Sheet{}, Refused: func(err error) { t.Errorf("refused: %v", err) }}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := g.Start(ctx, "mine", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the start ends with %v", err)
	}
}
