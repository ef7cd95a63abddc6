package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/emulator/tun"
	"linktrial/internal/backoff"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/service"
	"linktrial/lab/netns"
)

// Config of the first process of a guest.
type Config struct {
	// Dir holds the links to the host's folders, see [LinkShare].
	Dir string
	// Job is the name of the job file in the shared folder.
	Job string
	// Agent is the command line of an agent after the program's own name; it
	// reads an [Agent] from standard input.
	Agent []string
	// Emulator is the command line of an emulator, in the same way; it reads a
	// [tun.Config]. Only where faults are injected it is a process of its own.
	Emulator []string
	// Query is the command line of what queries drivers, in the same way. It reads a
	// [Query], and writes a list of [Driver] to standard output.
	Query []string
}

// timeEvery is how often, in virtual time, the console reports the time.
const timeEvery = 20 * time.Second

// Main carries out the job and powers the guest off; on success it does
// not return. It must be the guest's first process.
func Main(ctx context.Context, cfg Config) error {
	if os.Getpid() != 1 {
		return errors.New("this is the first process of a guest of the virtual-time lab; only the lab starts it")
	}
	g := &guest{cfg: cfg, began: time.Now(), console: os.Stdout}
	if err := g.run(ctx); err != nil {
		g.say(Line{Kind: LineFailed, Text: err.Error()})
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		return fmt.Errorf("power off: %w", err)
	}
	return nil
}

type guest struct {
	cfg   Config
	began time.Time

	drivers []string // the host's folders of drivers
	trace   bool
	answers bool // processes tell what they use

	mu        sync.Mutex // guards the rest
	console   io.Writer
	agentPIDs map[radio.Role]int
}

func (g *guest) say(l Line) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.At = time.Since(g.began)
	fmt.Fprintln(g.console, l)
}

func (g *guest) run(ctx context.Context) (err error) {
	if g.drivers, err = prepare(g.cfg.Dir); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(ShareDir, g.cfg.Job))
	if err != nil {
		return fmt.Errorf("job: %w", err)
	}
	job, err := ParseJob(b)
	if err != nil {
		return err
	}
	g.trace = job.Trace
	defer service.Go(ctx, g.reportTime)()
	if len(job.Query) > 0 {
		if err := g.query(ctx, job.Query); err != nil {
			return err
		}
	}
	if job.Vitals > 0 {
		if err := g.answer(); err != nil {
			return err
		}
	}
	for i, s := range job.Sheets {
		g.say(Line{Kind: LineBegun, Sheet: i})
		end := Line{Kind: LineEnded, Sheet: i}
		costs := Costs{}
		execute := g.sheet
		if s.Faults != nil {
			execute = func(ctx context.Context, s Sheet, _ Costs) error { return g.faultySheet(ctx, i, s) }
		}
		stopLooking := func() error { return nil }
		if job.Vitals > 0 {
			if stopLooking, err = g.lookEvery(ctx, s, job.Vitals); err != nil {
				return err
			}
		}
		if err := errors.Join(execute(ctx, s, costs), stopLooking()); err != nil {
			end.Text = err.Error()
		}
		g.say(Line{Kind: LineCosts, Sheet: i, Text: costs.String()})
		g.say(end)
	}
	g.say(Line{Kind: LineDone})
	return nil
}

// query asks drivers whether they can run here, as confined as they run.
func (g *guest) query(ctx context.Context, drivers []string) error {
	doc, err := json.Marshal(Query{Names: drivers, View: g.view(radio.RoleClient)})
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(ShareDir, QueryFile))
	if err != nil {
		return err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, g.cfg.Query...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = bytes.NewReader(doc), out, &said, viewed()
	if err := errors.Join(cmd.Run(), out.Close()); err != nil {
		return fmt.Errorf("query drivers: %w: %.500s", err, said.Bytes())
	}
	return nil
}

// reportTime writes the time to the console until ctx ends.
func (g *guest) reportTime(ctx context.Context) {
	t := time.NewTicker(timeEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			g.say(Line{Kind: LineTime})
		}
	}
}

// prepare makes the bare kernel ready for agents: mounts and host name. It returns the
// host's folders of drivers.
func prepare(dir string) (drivers []string, err error) {
	if drivers, err = mounts(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(radiosDir, privateRun); err != nil {
		return nil, err
	}
	if err := unix.Sethostname([]byte(Host)); err != nil {
		return nil, fmt.Errorf("set host name: %w", err)
	}
	for k, v := range map[string]string{"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8"} {
		if err := os.Setenv(k, v); err != nil {
			return nil, err
		}
	}
	return drivers, nil
}

const (
	device        = "radio0"
	radiosDir     = "/run/radios"
	controlSocket = radiosDir + "/emulator.sock" // and the nodes' clocks beside it
	// listenTime is how long, in virtual time, the server's agent runs before the
	// client's starts: more than its listeners may take to be ready or to fail.
	// Idle time costs nothing here.
	listenTime = 20 * time.Second
	// endGrace is how long an agent may take to end when it is asked to.
	endGrace = 60 * time.Second
)

// sheet executes one run: it makes namespaces, radios and agents, and removes
// them afterwards.
func (g *guest) sheet(ctx context.Context, s Sheet, costs Costs) (err error) {
	if s.Network == nil {
		return errors.New("the radio of this run cannot be emulated")
	}
	before, err := ownSwitches()
	if err != nil {
		return err
	}
	if g.trace {
		t, terr := trace(Emulator, os.Getpid())
		if terr != nil {
			return terr
		}
		defer func() { err = errors.Join(err, t.end()) }()
	}
	cfg := tun.Config{Device: device, Network: s.Network, ControlSocket: controlSocket, Shared: true, Logger: slog.New(slog.DiscardHandler)}
	for _, n := range s.Network.Nodes {
		if err := netns.MakeNamespace(string(n.Role)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, netns.RemoveNamespace(string(n.Role))) }()
		cfg.Nodes = append(cfg.Nodes, tun.NodeConfig{Role: n.Role, NetNS: string(n.Role), Address: n.Address})
	}
	radios, err := tun.Start(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, radios.Stop()) }()
	if err := g.agents(ctx, s, costs); err != nil {
		return err
	}
	after, err := ownSwitches()
	costs[Emulator] = after - before
	return err
}

// agents starts an agent in each node, and ends them when the client's has ended.
func (g *guest) agents(ctx context.Context, s Sheet, costs Costs) error {
	var others []*running
	var client *radio.Node
	defer func() {
		for _, a := range others {
			a.cmd.Process.Signal(syscall.SIGKILL)
		}
	}()
	for i, n := range s.Network.Nodes {
		if n.Role == radio.RoleClient {
			client = &s.Network.Nodes[i]
			continue
		}
		a, err := g.start(s, n)
		if err != nil {
			return err
		}
		others = append(others, a)
	}
	if client == nil {
		return errors.New("the network of this run has no client")
	}
	if !backoff.Sleep(ctx, listenTime) {
		return ctx.Err()
	}
	lead, err := g.start(s, *client)
	if err != nil {
		return err
	}
	err = lead.wait(ctx, 0)
	for _, a := range others {
		a.stdin.Close()
	}
	for _, a := range others {
		err = errors.Join(err, a.wait(ctx, endGrace))
	}
	for _, a := range append(others, lead) {
		costs.add(string(a.role), a.cmd.ProcessState)
	}
	others = nil
	return err
}

// running is one agent.
type running struct {
	role  radio.Role
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   string
	trace *tracer // nil: none
	done  chan error
}

// start starts an agent on a node.
func (g *guest) start(s Sheet, n radio.Node) (*running, error) {
	doc := Agent{
		Name: NodeName(n.Role), Role: n.Role, Run: s.Run, Sheet: filepath.Join(ShareDir, s.File()), Trust: filepath.Join(ShareDir, TrustFile),
		StateDir: filepath.Join(ShareDir, s.StateDir(n.Role)), Device: device,
		RadioAddress: n.Address, RadioControl: controlSocket, Place: Place, Faults: s.Faults != nil,
	}
	doc.View = g.view(n.Role, doc.Sheet, filepath.Join(ShareDir, s.SignatureFile()), doc.Trust, doc.StateDir, radiosDir)
	if err := os.MkdirAll(doc.StateDir, 0o755); err != nil {
		return nil, err
	}
	spec, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	a := &running{role: n.Role, done: make(chan error, 1), log: filepath.Join(ShareDir, s.Run, string(n.Role)+".log")}
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	a.cmd = exec.Command(program, g.cfg.Agent...)
	a.cmd.Stdout, a.cmd.Stderr = log, log
	a.cmd.SysProcAttr = viewed()
	if a.cmd.Env, err = g.environment(n.Role); err != nil {
		return nil, err
	}
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := process.StartIn(a.cmd, netns.NamespacePath(string(n.Role))); err != nil {
		return nil, fmt.Errorf("start the agent of the %s: %w", n.Role, err)
	}
	g.notePID(n.Role, a.cmd.Process.Pid)
	if s.Faults != nil {
		return a, a.brief(spec) // who supervises it waits for its end
	}
	if g.trace {
		if a.trace, err = trace(string(n.Role), a.cmd.Process.Pid); err != nil {
			a.cmd.Process.Kill()
			return nil, errors.Join(err, a.cmd.Wait())
		}
	}
	go func() {
		err := a.cmd.Wait()
		if a.trace != nil {
			err = errors.Join(err, a.trace.end())
		}
		a.done <- err
	}()
	if err := a.brief(spec); err != nil {
		return nil, err
	}
	return a, nil
}

// brief tells an agent what it is to do.
func (a *running) brief(spec []byte) error {
	if _, err := a.stdin.Write(append(spec, '\n')); err != nil {
		a.cmd.Process.Kill()
		return fmt.Errorf("agent of the %s: %w", a.role, err)
	}
	return nil
}

// wait returns when the agent has ended; after limit (0: none) or with ctx it is ended.
func (a *running) wait(ctx context.Context, limit time.Duration) error {
	var late <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		late = t.C
	}
	var err error
	select {
	case err = <-a.done:
	case <-late:
		a.cmd.Process.Kill()
		err = errors.Join(fmt.Errorf("did not end within %s", limit), <-a.done)
	case <-ctx.Done():
		a.cmd.Process.Kill()
		err = errors.Join(ctx.Err(), <-a.done)
	}
	if err != nil {
		return fmt.Errorf("agent of the %s: %w (its log: %s)", a.role, err, a.log)
	}
	return nil
}

// NodeName is the name of a guest's node, which no node outside a guest has.
func NodeName(role radio.Role) string { return "virtual-" + string(role) }
