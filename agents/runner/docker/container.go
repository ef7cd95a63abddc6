package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"linktrial/agents/runner"
	"linktrial/executor"
	"linktrial/internal/service"
	"linktrial/protocols/contract"
)

func notFound(err error) bool { return errdefs.IsNotFound(err) }

// engineLimit is how long the engine may take for one request that it answers
// at once when all is well. Beyond it the driver counts as not started.
const engineLimit = 30 * time.Second

// driver is one container with a driver.
type driver struct {
	r        *Runner
	id       string
	in       client.HijackedResponse
	out      *os.File // our end of the pipe
	log      *runner.Log
	memory   int64
	logs     string // folder that the container has for logs of transfers; "" for none
	waited   client.ContainerWaitResult
	stopWait context.CancelFunc
	stops    executor.Stops

	mu   sync.Mutex
	keep string // where its logs are kept
	gone bool
	exit executor.Exit
	done chan struct{}
}

// warm is a container that has started and waits for its parameters.
type preparedContainer struct {
	image string
	d     *driver
}

// Start implements [executor.Runner].
func (r *Runner) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (executor.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	i, err := r.image(ctx, protocol)
	if err != nil {
		return nil, err
	}
	if !i.manifest.Plays(p.Role) {
		return nil, fmt.Errorf("protocol %s: %w with the role %s: its manifest does not have it", protocol, executor.ErrNoDriver, p.Role)
	}
	if f, lacks := i.manifest.Lacks(p); lacks {
		return nil, fmt.Errorf("protocol %s: %w that can do what the flow asks: its manifest has no feature %s", protocol, executor.ErrNoDriver, f)
	}
	d := r.takePrepared(p.Transfer.ID, i)
	if d == nil {
		d, err = r.start(ctx, protocol, i, p)
	} else if err = r.radioOnly.Allow(p); err != nil {
		d.discard()
	}
	if err != nil {
		return nil, fmt.Errorf("protocol %s: %w", protocol, err)
	}
	go d.give(d.parameters(*p), payload)
	return d, nil
}

// parameters are those of a driver as its container sees the node.
func (d *driver) parameters(p contract.Parameters) *contract.Parameters {
	d.mu.Lock()
	d.keep = p.LogFolder
	d.mu.Unlock()
	if p.LogFolder != "" {
		p.LogFolder = "" // of this node, which a container cannot see
		if d.logs != "" {
			p.LogFolder = logsInside
		}
	}
	return &p
}

// Prepare implements [executor.Preparer]: a container of the protocol starts and
// waits for its parameters, so that Start takes no time of the trial's.
func (r *Runner) Prepare(ctx context.Context, protocol, transfer string) (release func()) {
	i, err := r.image(ctx, protocol)
	if err != nil || transfer == "" {
		return func() {} // Start reports what is wrong
	}
	d, err := r.start(ctx, protocol, i, &contract.Parameters{Role: contract.RoleClient, Transfer: contract.Transfer{ID: transfer}})
	if err != nil {
		r.cfg.Logger.Warn("driver's container could not be prepared", "protocol", protocol, "error", err)
		return func() {}
	}
	r.mu.Lock()
	r.prepared[transfer] = preparedContainer{i.id, d}
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		_, left := r.prepared[transfer]
		delete(r.prepared, transfer)
		r.mu.Unlock()
		if left {
			d.discard()
		}
	}
}

// takePrepared returns the container that was prepared, nil where none runs.
func (r *Runner) takePrepared(transfer string, i image) *driver {
	r.mu.Lock()
	w, ok := r.prepared[transfer]
	delete(r.prepared, transfer)
	r.mu.Unlock()
	if !ok {
		return nil
	}
	select {
	case <-w.d.done: // it ended while it waited
		w.d.out.Close()
		return nil
	default:
	}
	if w.image != i.id {
		w.d.discard()
		return nil
	}
	w.d.stops.Forget()
	return w.d
}

// discard ends a container that was prepared and not started.
func (d *driver) discard() {
	d.out.Close()
	d.Kill()
	<-d.done
}

// start makes, attaches and starts a container. Where the container that holds
// the network has ended, it is made anew once.
func (r *Runner) start(ctx context.Context, protocol string, i image, p *contract.Parameters) (*driver, error) {
	// A start that has begun is completed, so that its container is known.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineLimit)
	defer cancel()
	for again := false; ; again = true {
		network, err := r.networkContainer(ctx, i.id)
		if err != nil {
			return nil, err
		}
		d, err := r.run(ctx, protocol, i, p, network)
		if err == nil {
			return d, nil
		}
		r.mu.Lock()
		held := r.held
		r.mu.Unlock()
		if again || !held {
			return nil, err
		}
		c, ierr := r.engine.ContainerInspect(ctx, network, client.ContainerInspectOptions{})
		if ierr == nil && c.Container.State.Running {
			return nil, err
		}
		_ = r.remove(ctx, network) // what is left of it; a new one is made
		r.mu.Lock()
		if r.network == network {
			r.network = ""
		}
		r.mu.Unlock()
	}
}

func (r *Runner) run(ctx context.Context, protocol string, i image, p *contract.Parameters, network string) (*driver, error) {
	if err := r.radioOnly.Hold(p); err != nil {
		return nil, err
	}
	d, err := r.create(ctx, protocol, i, p, network)
	if err != nil {
		return nil, fmt.Errorf("container of %s: %w", i.name, err)
	}
	var outW *os.File
	fail := func(err error) (*driver, error) {
		if d.in.Conn != nil {
			d.in.Close()
		}
		if outW != nil {
			outW.Close()
			d.out.Close()
		}
		return nil, errors.Join(fmt.Errorf("container of %s: %w", i.name, err), r.remove(ctx, d.id), d.keepLogs())
	}
	attached, err := r.engine.ContainerAttach(ctx, d.id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return fail(err)
	}
	d.in = attached.HijackedResponse
	if d.out, outW, err = os.Pipe(); err != nil {
		return fail(err)
	}
	// Waiting begins before the start: no end is missed.
	var waiting context.Context
	waiting, d.stopWait = context.WithCancel(context.Background())
	d.waited = r.engine.ContainerWait(waiting, d.id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	r.track(d)
	if _, err := r.engine.ContainerStart(ctx, d.id, client.ContainerStartOptions{}); err != nil {
		r.untrack(d)
		d.stopWait()
		if errdefs.IsInvalidArgument(err) { // the image's program is not there, or cannot be executed
			err = fmt.Errorf("%w: %w", executor.ErrBrokenDriver, err)
		}
		return fail(err)
	}
	d.log = runner.NewLog(d.Kill)
	r.closing.Add(1)
	go d.watch(outW)
	return d, nil
}

// create makes the container of a driver, with a folder for logs where the engine
// sees this node's.
func (r *Runner) create(ctx context.Context, protocol string, i image, p *contract.Parameters, network string) (*driver, error) {
	logs, err := r.logsFolder(p)
	if err != nil {
		return nil, fmt.Errorf("folder for logs: %w", err)
	}
	config, host := r.configure(protocol, i, p, network)
	mountLogs(host, logs)
	made, err := r.engine.ContainerCreate(ctx, client.ContainerCreateOptions{Config: config, HostConfig: host})
	switch {
	case err == nil:
		return &driver{r: r, id: made.ID, memory: host.Memory, logs: logs, done: make(chan struct{})}, nil
	case r.learns(err):
		if rerr := os.RemoveAll(logs); rerr != nil {
			return nil, errors.Join(err, rerr)
		}
		return r.create(ctx, protocol, i, p, network)
	case logs == "":
		return nil, err
	}
	if rerr := os.RemoveAll(logs); rerr != nil || !isHidden(err) {
		return nil, errors.Join(err, rerr)
	}
	r.hidden.Store(true)
	r.cfg.Logger.Info("drivers in containers have no folder for logs: the engine does not see this node's", "folder", r.cfg.StateDir)
	return r.create(ctx, protocol, i, p, network)
}

// newCapabilities are those that Docker Engine knows from version 23.0 on; Debian 12 has
// 20.10. What takes them is an option of a driver, whose query says that it is missing.
var newCapabilities = []string{"CAP_BPF", "CAP_PERFMON", "CAP_CHECKPOINT_RESTORE"}

// learns reports whether the engine has refused a container for one of these, which is
// then no longer asked for.
func (r *Runner) learns(err error) bool {
	if !errdefs.IsInvalidArgument(err) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range newCapabilities {
		if strings.Contains(err.Error(), "unknown capability: \""+c+"\"") && !r.unknown[c] {
			r.unknown[c] = true
			r.cfg.Logger.Warn("drivers in containers go without a capability that this container engine does not know: Docker Engine 23.0 is the first that does", "capability", c)
			return true
		}
	}
	return false
}

// configure is what a driver's container may do.
func (r *Runner) configure(protocol string, i image, p *contract.Parameters, network string) (*container.Config, *container.HostConfig) {
	m := i.manifest
	labels := map[string]string{LabelAgent: r.cfg.Agent, LabelProtocol: protocol, LabelRole: string(p.Role)}
	if p.Transfer.ID != "" {
		labels[LabelTransfer] = p.Transfer.ID
	}
	command := append([]string(nil), m.Command...)
	dir := path.Dir(ManifestPath)
	if strings.Contains(command[0], "/") && !path.IsAbs(command[0]) {
		command[0] = path.Join(dir, command[0])
	}
	var capabilities []string
	r.mu.Lock()
	for _, c := range m.Capabilities {
		if !r.unknown[c] {
			capabilities = append(capabilities, strings.TrimPrefix(c, "CAP_"))
		}
	}
	r.mu.Unlock()
	memory, cpus, processes := m.Resources.MemoryBytes, m.Resources.CPUs, m.Resources.Processes
	if memory == 0 {
		memory = DefaultMemoryBytes
	}
	if cpus == 0 {
		cpus = DefaultCPUs
	}
	cpus = min(cpus, r.cpus) // the engine refuses more than it has
	if processes == 0 {
		processes = DefaultProcesses
	}
	config := &container.Config{
		Image: i.id, Entrypoint: command[:1], Cmd: command[1:], WorkingDir: dir,
		Env: []string{"LC_ALL=C.UTF-8"}, Labels: labels,
		AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}, // the executor watches a driver's events
	}
	// The first process of a container has no default for signals: without an
	// init, SIGTERM would not end a driver that has no handler for it.
	init := true
	host := &container.HostConfig{
		NetworkMode: container.NetworkMode("container:" + network),
		CapDrop:     []string{"ALL"}, CapAdd: capabilities, SecurityOpt: []string{"no-new-privileges"},
		ReadonlyRootfs: true, Init: &init, IpcMode: "private",
		// The journal keeps a driver's output; the engine's copy would grow without bound.
		LogConfig: container.LogConfig{Type: "none"},
		Resources: container.Resources{Memory: memory, MemorySwap: memory, NanoCPUs: int64(cpus * 1e9), PidsLimit: &processes},
	}
	if r.cfg.Device != "" {
		config.User, host.GroupAdd = r.user(i.user)
		host.SecurityOpt = append(host.SecurityOpt, "seccomp="+r.sockets(m))
	}
	return config, host
}

// give hands the parameters and the payload over. The executor notices a driver that
// does not read them.
func (d *driver) give(p *contract.Parameters, payload io.Reader) {
	if err := runner.Give(d.in.Conn, p, payload); err == nil {
		_ = d.in.CloseWrite() // fails where the container has ended
	}
}

func (d *driver) Output() io.ReadCloser  { return d.out }
func (d *driver) Done() <-chan struct{}  { return d.done }
func (d *driver) Stops() *executor.Stops { return &d.stops }
func (d *driver) Terminate()             { d.signal("SIGTERM") }
func (d *driver) Kill()                  { d.signal("SIGKILL") }
func (d *driver) Log() string            { return d.log.String() }

func (d *driver) Exit() executor.Exit {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.exit
}

// signal does not wait for the engine.
func (d *driver) signal(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		return
	}
	d.r.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), engineLimit)
		defer cancel()
		_, err := d.r.engine.ContainerKill(ctx, d.id, client.ContainerKillOptions{Signal: name})
		if err != nil && !notFound(err) && !errdefs.IsConflict(err) {
			d.r.cfg.Logger.Error("driver's container could not be signalled", "container", short(d.id), "signal", name, "error", err)
		}
	})
}

// watch reads the driver's output, waits for its end, removes the container and
// closes done.
func (d *driver) watch(outW *os.File) {
	defer d.r.closing.Done()
	defer close(d.done)
	defer d.r.untrack(d)
	defer service.Go(context.Background(), d.watchState)()
	read := make(chan struct{})
	go func() {
		defer close(read)
		// Ends with the connection.
		_, _ = stdcopy.StdCopy(&reader{w: outW}, d.log, d.in.Reader)
		outW.Close()
	}()
	exit := executor.Exit{Code: -1}
	select {
	case w := <-d.waited.Result:
		exit = outcome(w.StatusCode)
		if w.Error != nil && w.Error.Message != "" {
			d.log.Note(w.Error.Message)
		}
	case err := <-d.waited.Error:
		// The engine ended: the state of its containers is unknown.
		exit.Signal = executor.SignalLost
		d.log.Note(fmt.Sprintf("container engine: %v", err))
	}
	d.stopWait()
	d.mu.Lock()
	d.gone = true
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), engineLimit)
	defer cancel()
	if exit.Signal == unix.SIGKILL.String() {
		if c, err := d.r.engine.ContainerInspect(ctx, d.id, client.ContainerInspectOptions{}); err == nil && c.Container.State != nil && c.Container.State.OOMKilled {
			exit.OverMemory = true
			d.log.Note(fmt.Sprintf("ended by the kernel: more than its %d bytes of memory", d.memory))
		}
	}
	// The connection ends with the container's output, unless the engine hangs.
	select {
	case <-read:
	case <-time.After(strayGrace):
	}
	d.in.Close()
	<-read
	if err := d.r.remove(ctx, d.id); err != nil {
		d.r.cfg.Logger.Error("driver's container could not be removed", "container", short(d.id), "error", err)
	}
	if err := d.keepLogs(); err != nil {
		d.r.cfg.Logger.Error("logs of a driver's container could not be kept", "container", short(d.id), "error", err)
	}
	exit.Flooded = d.log.Flooded()
	d.mu.Lock()
	d.exit = exit
	d.mu.Unlock()
}

// strayGrace is how long output is still read after a driver's end.
const strayGrace = 2 * time.Second

// outcome reads an exit code: above 128 it is a signal's, as a shell's.
func outcome(code int64) executor.Exit {
	if code > 128 && code <= 128+64 {
		return executor.Exit{Code: -1, Signal: syscall.Signal(code - 128).String()}
	}
	return executor.Exit{Code: int(code)}
}

// reader passes on what is written to it; once its pipe is closed it discards
// the rest, so that the log in the same stream is still read.
type reader struct {
	w      *os.File
	broken bool
}

func (o *reader) Write(b []byte) (int, error) {
	if !o.broken {
		if _, err := o.w.Write(b); err != nil {
			o.broken = true
		}
	}
	return len(b), nil
}
