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

// Orchestrator is one that runs as a process of its own, started again if it
// dies: agents do not need it to go on measuring.
type Orchestrator struct {
	URL string

	p *process.Supervisor
}

// startLimit is for a first start, which makes the database.
const startLimit = 90 * time.Second

// StartOrchestrator starts this program's 'serve', with a data folder of its
// own, on a port of the loopback that is free, and waits until it answers. What it writes goes to log; its starts
// and ends to logger.
func StartOrchestrator(ctx context.Context, s *setting.Settings, data string, log *os.File, logger *slog.Logger) (*Orchestrator, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	listen := l.Addr().String()
	l.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o := &Orchestrator{URL: "http://" + listen}
	o.p, err = process.Supervise("orchestrator", logger, func() (*exec.Cmd, error) {
		cmd := exec.Command(self, append([]string{"serve", "--listen", listen, "--data", data}, s.Folders()...)...)
		cmd.Stderr = log
		return cmd, process.Start(cmd)
	})
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

// PID is the process as it runs now; 0 while it is started again.
func (o *Orchestrator) PID() int { return o.p.PID() }

// Stop has it hand over what it has, and ends it.
func (o *Orchestrator) Stop(ctx context.Context) { o.p.Stop(ctx, 15*time.Second) }

// lastLine is what a log ends with, or the error that ended a program of ours;
// empty where there is no log.
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
