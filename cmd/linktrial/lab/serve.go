package lab

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/backoff"
	"linktrial/internal/process"
)

// Orchestrator is a supervised orchestrator process, which is started again when it
// dies. Agents continue to measure without it.
type Orchestrator struct {
	URL string

	p *process.Supervisor
}

// startLimit bounds the first start, which creates the database.
const startLimit = 90 * time.Second

// StartOrchestrator starts 'linktrial serve' on a free port of the loopback, with its
// own data folder, and blocks until it answers, the start has failed, or ctx ends. Its
// output goes to log, its starts and ends to logger.
func StartOrchestrator(ctx context.Context, s *setting.Settings, data string, log *os.File, logger *slog.Logger) (*Orchestrator, error) {
	return startOrchestrator(ctx, s, data, log, logger, func(_ context.Context, cmd *exec.Cmd) error { return process.Start(cmd) })
}

// startOrchestrator is [StartOrchestrator] with a way to start the process.
func startOrchestrator(ctx context.Context, s *setting.Settings, data string, log *os.File, logger *slog.Logger, start func(context.Context, *exec.Cmd) error) (*Orchestrator, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	listen := l.Addr().String()
	l.Close()
	self, err := s.Executable()
	if err != nil {
		return nil, err
	}
	o := &Orchestrator{URL: "http://" + listen}
	o.p, err = process.Supervision{Name: "orchestrator", Log: logger, Start: func(ctx context.Context) (*exec.Cmd, error) {
		cmd := exec.Command(self, append([]string{"serve", "--listen", listen, "--data", data}, s.Folders()...)...)
		cmd.Stderr = log
		return cmd, start(ctx, cmd)
	}}.Run(ctx)
	if err != nil {
		return nil, err
	}
	c := client.New(o.URL)
	for deadline := time.Now().Add(startLimit); ; {
		up, err := client.Answers(ctx, c)
		if up {
			return o, nil
		}
		switch {
		case time.Now().After(deadline) || o.p.Restarts() > 2:
			err = fmt.Errorf("the orchestrator does not start: %s", cmp.Or(lastLine(log.Name()), fmt.Sprint(err)))
		case backoff.Sleep(ctx, 50*time.Millisecond):
			continue
		default:
			err = ctx.Err()
		}
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		o.Stop(stop)
		return nil, err
	}
}

// PID returns the process ID, 0 while the process is being restarted.
func (o *Orchestrator) PID() int { return o.p.PID() }

// Stop ends the process, which first stores what it has received. It blocks until the
// process has ended, for 15 s at most.
func (o *Orchestrator) Stop(ctx context.Context) { o.p.Stop(ctx, 15*time.Second) }

// lastLine returns the last error of this program in a log, or else the last line of
// the log; "" where there is none.
func lastLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if rest, ok := strings.CutPrefix(lines[i], "linktrial: "); ok {
			return rest
		}
	}
	return lines[len(lines)-1]
}
