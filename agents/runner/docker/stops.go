package docker

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"

	"linktrial/internal/backoff"
	"linktrial/internal/service"
)

// A container that is paused, and a driver that is stopped in it (SIGSTOP), do not run, and
// what the driver measures meanwhile is false. The engine tells of the one. Of the other
// only a process's parent hears, which is the container's first process; so the agent looks
// at the driver's state now and then.
const (
	// stateEvery is how often it looks: a shorter stop can be missed.
	stateEvery = 100 * time.Millisecond
	// eventsAgain is the time until events are asked for again, after the engine ended.
	eventsAgain = time.Second
)

// watchPauses tells drivers when their containers are paused and go on, until ctx ends.
// ready is called when no later pause is missed.
func (r *Runner) watchPauses(ctx context.Context, ready func()) {
	// The engine answers before it listens to its own events (moby, getEvents), so it is
	// asked for those since a moment before as well, the first time and each time after.
	last := time.Now()
	for {
		stream := r.engine.Events(ctx, client.EventsListOptions{
			Since: fmt.Sprintf("%d.%09d", last.Unix(), last.Nanosecond()),
			Filters: client.Filters{}.
				Add("type", string(events.ContainerEventType)).Add("event", string(events.ActionPause), string(events.ActionUnPause)).Add("label", LabelAgent+"="+r.cfg.Agent),
		})
		ready()
		err := r.takePauses(stream, &last)
		if ctx.Err() != nil {
			return
		}
		r.cfg.Logger.Debug("events of the container engine ended, and are asked for again", "error", err)
		if !backoff.Sleep(ctx, eventsAgain) {
			return
		}
	}
}

// takePauses takes the engine's events until they end; last is the time of the latest one,
// which the engine tells again where it is asked for those since then.
func (r *Runner) takePauses(stream client.EventsResult, last *time.Time) error {
	for {
		select {
		case m := <-stream.Messages:
			at := time.Unix(0, m.TimeNano)
			if !at.After(*last) {
				continue
			}
			*last = at
			r.mu.Lock()
			d := r.running[m.Actor.ID]
			r.mu.Unlock()
			if d != nil {
				d.stops.Set(m.Action == events.ActionPause)
			}
		case err := <-stream.Err:
			return err
		}
	}
}

// track has pauses of a container told to its driver. The first call begins to listen.
func (r *Runner) track(d *driver) {
	listening := make(chan struct{})
	r.mu.Lock()
	r.running[d.id] = d
	first := r.endEvents == nil
	if first {
		ready := sync.OnceFunc(func() { close(listening) })
		r.endEvents = service.Go(context.Background(), func(ctx context.Context) { r.watchPauses(ctx, ready) })
	}
	r.mu.Unlock()
	if !first {
		return
	}
	select {
	case <-listening:
	case <-time.After(engineLimit): // the start that follows fails as well
	}
}

func (r *Runner) untrack(d *driver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, d.id)
}

// watchState tells when the driver in the container is stopped and goes on, until the
// container ends. It needs the node's processes: an agent in a container that has a PID
// namespace of its own sees pauses alone.
func (d *driver) watchState(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, engineLimit)
	c, err := d.r.engine.ContainerInspect(asking, d.id, client.ContainerInspectOptions{})
	cancel()
	if err != nil || c.Container.State == nil || c.Container.State.Pid <= 0 || !inContainer(c.Container.State.Pid, d.id) {
		return
	}
	first, driver, stopped := c.Container.State.Pid, 0, false
	for ; ; backoff.Sleep(ctx, stateEvery) {
		if ctx.Err() != nil {
			return
		}
		if driver == 0 {
			if driver = childOf(first); driver == 0 {
				continue
			}
		}
		state, known := stateOf(driver)
		if !known {
			return // it has ended, and the container does
		}
		if now := state == 'T'; now != stopped {
			stopped = now
			d.stops.Set(stopped)
		}
	}
}

// inContainer reports whether a process is the container's, and not another one that has
// this number in the agent's PID namespace.
func inContainer(pid int, id string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && strings.Contains(string(b), id)
}

// childOf is the only child of a container's first process: the driver; 0: there is none
// yet.
func childOf(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0
	}
	child, _, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	n, _ := strconv.Atoi(child)
	return n
}

// stateOf is the state of a process, as proc(5) has it.
func stateOf(pid int) (state byte, known bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// Its name, in brackets, can have any character.
	if i := bytes.LastIndexByte(b, ')'); i >= 0 && len(b) > i+2 {
		return b[i+2], true
	}
	return 0, false
}
