package agent

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

func (o *orchestrator) command(list ...*linktrialv1.RunCommand) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commands = append(o.commands, list...)
	o.bump()
}

// events are the client's delivered commands and ended trials.
func (o *orchestrator) events() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, r := range o.stored["client"] {
		switch r.Type {
		case journal.TypeCommand:
			var b journal.Command
			if json.Unmarshal(r.Body, &b) == nil {
				out = append(out, string(b.Kind)+" "+b.ID)
			}
		case journal.TypeTrialEnded:
			var b journal.TrialEnded
			if json.Unmarshal(r.Body, &b) == nil {
				out = append(out, strings.TrimSpace("trial "+string(rune('0'+b.Trial))+" "+string(b.Verdict)+" "+b.Reason))
			}
		case journal.TypeRunEnded:
			out = append(out, "end")
		}
	}
	return out
}

func (o *orchestrator) recorded(what string) func() bool {
	return func() bool { return slices.Contains(o.events(), what) }
}

// uncounted are the calls that arrived while a trial ran, but for those whose packets the
// server counted: while the client's agent is away or paused, the server's opens windows, and
// one that is open when the next trial begins makes its attempt invalid.
func (o *orchestrator) uncounted() []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.during), func(at time.Time) bool {
		return slices.ContainsFunc(o.stored["server"], func(r journal.Record) bool {
			var c journal.ControlCounted
			return r.Type == journal.TypeControlCounted && json.Unmarshal(r.Body, &c) == nil &&
				c.Packets > 0 && !at.Before(c.Since) && !at.After(c.Until.Add(time.Second)) // it arrives after its packets
		})
	})
}

// Commands reach the executor whenever they are given: before the run, in a
// pause and while a trial runs; an agent that is started again in the pause
// stays in it, even where the orchestrator has lost the command.
func TestCommands(t *testing.T) {
	for _, control := range []runsheet.Control{runsheet.ControlOutOfBand, runsheet.ControlInBand} {
		t.Run(string(control), func(t *testing.T) {
			o := newOrchestrator(t, sheetOf(t, 3, control, 20))
			client := config(t, radio.RoleClient, o.server.URL)
			client.Window = 20 * time.Second // a busy machine may need long to answer
			stopClient := runAgent(t, client)
			stopServer := runAgent(t, config(t, radio.RoleServer, o.server.URL))
			o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "client", "server")
			eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
			eventually(t, "clock", o.has("client", journal.TypeClockOffset, 1))
			if control == runsheet.ControlInBand {
				time.Sleep(300 * time.Millisecond) // until the server suspends its calls
				runs := func() bool { return trialRuns(client.StateDir) }
				o.running.Store(&runs)
			}
			o.command(&linktrialv1.RunCommand{Id: "1", Kind: "pause", By: "ada"}, &linktrialv1.RunCommand{Id: "2", Kind: "skip", Trial: 1})
			eventually(t, "the commands are noted", func() bool {
				n, _, err := readNotes(filepath.Join(client.StateDir, "runs"))
				return err == nil && len(n) == 1 && len(n[0].Commands) == 2
			})
			stopClient()
			o.mu.Lock()
			kept := o.commands
			o.commands = nil
			o.mu.Unlock()
			stopClient = runAgent(t, client)
			eventually(t, "the agent's second start", o.has("client", journal.TypeRunResumed, 1))
			o.want(linktrialv1.Assignment_DESIRED_STATE_RUN, "client", "server")
			eventually(t, "pause and skip", o.recorded("trial 1 aborted skipped"))
			stopClient()
			stopClient = runAgent(t, client)
			eventually(t, "the agent's third start", o.has("client", journal.TypeRunResumed, 2))
			time.Sleep(200 * time.Millisecond)
			if s := o.events(); slices.Contains(s, "trial 0 succeeded") || len(s) != 3 {
				t.Errorf("in the pause: %q", s)
			}
			o.command(append(kept, &linktrialv1.RunCommand{Id: "3", Kind: "resume"}, &linktrialv1.RunCommand{Id: "4", Kind: "repeat", Trial: 1})...)
			within(t, 90*time.Second, "end", o.has("client", journal.TypeRunEnded, 1))
			want := []string{"pause 1", "skip 2", "trial 1 aborted skipped", "resume 3", "repeat 4", "trial 1 succeeded", "trial 0 succeeded", "trial 2 succeeded", "end"}
			if got := o.events(); !slices.Equal(got, want) {
				t.Errorf("got %q, expected %q", got, want)
			}
			o.want(linktrialv1.Assignment_DESIRED_STATE_FINISH, "client", "server")
			eventually(t, "end of the server's part", o.has("server", journal.TypeRunEnded, 1))
			if calls := o.uncounted(); len(calls) > 0 {
				t.Errorf("calls arrived while a trial ran, and the server counted no packets of them: %s", calls)
			}
			stopClient()
			stopServer()
		})
	}
}

// In a run with in-band control a command that comes while a trial runs waits
// for the boundary, where the agent asks for it, after the last trial too.
func TestCommandInTheLastTrial(t *testing.T) {
	o := newOrchestrator(t, sheetOf(t, 1, runsheet.ControlInBand, 20))
	client := config(t, radio.RoleClient, o.server.URL)
	client.Window = 20 * time.Second // a busy machine may need long to answer
	stopClient := runAgent(t, client)
	stopServer := runAgent(t, config(t, radio.RoleServer, o.server.URL))
	o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "client", "server")
	eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
	o.want(linktrialv1.Assignment_DESIRED_STATE_RUN, "client", "server")
	eventually(t, "the first trial", func() bool { return trialRuns(client.StateDir) })
	o.command(&linktrialv1.RunCommand{Id: "1", Kind: "repeat", Trial: 0})
	eventually(t, "end", o.has("client", journal.TypeRunEnded, 1))
	if got, want := o.events(), []string{"trial 0 succeeded", "repeat 1", "trial 0 succeeded", "end"}; !slices.Equal(got, want) {
		t.Errorf("got %q, expected %q", got, want)
	}
	o.want(linktrialv1.Assignment_DESIRED_STATE_FINISH, "client", "server")
	eventually(t, "end of the server's part", o.has("server", journal.TypeRunEnded, 1))
	stopClient()
	stopServer()
}

// Where an answer takes longer than a window, windows grow until one brings the command.
func TestCommandOverASlowRadio(t *testing.T) {
	o := newOrchestrator(t, sheetOf(t, 10, runsheet.ControlInBand, 100)) // a wait after a window is shorter than a trial
	client := config(t, radio.RoleClient, o.server.URL)
	client.Window = 40 * time.Millisecond
	stopClient := runAgent(t, client)
	stopServer := runAgent(t, config(t, radio.RoleServer, o.server.URL))
	o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "client", "server")
	eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
	o.want(linktrialv1.Assignment_DESIRED_STATE_RUN, "client", "server")
	eventually(t, "the first trial", func() bool { return trialRuns(client.StateDir) })
	o.command(&linktrialv1.RunCommand{Id: "1", Kind: "skip", Trial: 9})
	o.delay.Store(int64(200 * time.Millisecond)) // answered in the third or fourth window of nine
	eventually(t, "end", o.has("client", journal.TypeRunEnded, 1))
	if s := o.events(); !slices.Contains(s, "trial 9 aborted skipped") {
		t.Errorf("got %q", s)
	}
	o.delay.Store(0)
	o.want(linktrialv1.Assignment_DESIRED_STATE_FINISH, "client", "server")
	eventually(t, "end of the server's part", o.has("server", journal.TypeRunEnded, 1))
	stopClient()
	stopServer()
}
