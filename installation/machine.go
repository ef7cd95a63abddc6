package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"linktrial/internal/atomicfile"
	"linktrial/internal/inputfile"
)

// Machine is a machine on which a package has installed Linktrial. Its methods are for one
// goroutine, and change what only root may change.
type Machine struct {
	Root    string // that all paths are below; empty: the machine's own
	Manager Manager
}

// Own returns this machine.
func Own() *Machine { return &Machine{Manager: &Systemd{}} }

// State is what of Linktrial the machine runs.
type State struct {
	Orchestrator, Agent Unit
}

// State returns what runs.
func (m *Machine) State(ctx context.Context) (s State, err error) {
	if s.Orchestrator, err = m.Manager.Unit(ctx, OrchestratorUnit); err == nil {
		s.Agent, err = m.Manager.Unit(ctx, AgentUnit)
	}
	return s, err
}

// StartOrchestrator has the orchestrator run now and after every boot, and returns when
// ready has returned nil. Where anything fails, ready included, files and service are as
// they were, and the error says what failed. An orchestrator that runs with these settings
// goes on as it does.
func (m *Machine) StartOrchestrator(ctx context.Context, s OrchestratorSettings, ready func(context.Context) error) error {
	path := m.at(orchestratorFile)
	f, _, err := readEnvFile(path)
	if err != nil {
		return err
	}
	has, _ := f.get(keyListen)
	if listen := cmp.Or(s.Listen, has, DefaultListen); listen != has {
		if err := f.set(keyListen, listen); err != nil {
			return err
		}
	}
	return m.step(ctx, OrchestratorUnit, ready, func() ([]written, error) {
		w, err := put(path, f.text, 0o644, -1)
		return []written{w}, err
	})
}

// StartAgent has the agent run as this node now and after every boot, as
// [Machine.StartOrchestrator] has the orchestrator.
func (m *Machine) StartAgent(ctx context.Context, s AgentSettings, ready func(context.Context) error) error {
	path := m.at(agentFile)
	f, _, err := readEnvFile(path)
	if err != nil {
		return err
	}
	if err := s.put(&f, path); err != nil {
		return err
	}
	err = m.step(ctx, AgentUnit, ready, func() (done []written, err error) {
		if s.Token != "" {
			uid, err := m.user(agentUser)
			if err != nil {
				return nil, err
			}
			w, err := put(m.at(tokenFile), s.Token+"\n", 0o600, uid)
			done = append(done, w)
			if err != nil {
				return done, err
			}
		}
		w, err := put(path, f.text, 0o644, -1)
		return append(done, w), err
	})
	if err != nil || s.Token == "" {
		return err
	}
	return m.forgetToken(s)
}

// GiveToAgent makes the state folder of a node, which root has made, the agent's.
func (m *Machine) GiveToAgent(node string) error {
	uid, err := m.user(agentUser)
	if err != nil {
		return err
	}
	paths := []string{m.at(AgentData), filepath.Dir(m.NodeState(node))}
	err = filepath.WalkDir(m.NodeState(node), func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	for _, path := range paths {
		err = errors.Join(err, os.Lchown(path, uid, -1))
	}
	if err != nil {
		return fmt.Errorf("state folder of the agent: %w", err)
	}
	return nil
}

// forgetToken removes a token that has enrolled its node: nothing asks for it any more.
func (m *Machine) forgetToken(s AgentSettings) error {
	path := m.at(agentFile)
	f, _, err := readEnvFile(path)
	if err != nil {
		return err
	}
	s.Token = ""
	if err := s.put(&f, path); err != nil {
		return err
	}
	if _, err := put(path, f.text, 0o644, -1); err != nil {
		return err
	}
	if err := os.Remove(m.at(tokenFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("used token: %w", err)
	}
	return nil
}

// JoiningSuffix ends the name of a folder, beside the state folder of a node, that a laptop
// enrols into.
const JoiningSuffix = ".joining"

// removeUnfinished removes what a command began that did not come to its end, as where the
// power was lost.
func (m *Machine) removeUnfinished() error {
	settings, err := filepath.Glob(m.at("/etc/linktrial/.*"))
	if err != nil {
		return err
	}
	joining, err := filepath.Glob(m.NodeState("*" + JoiningSuffix))
	if err != nil {
		return err
	}
	settings = slices.DeleteFunc(settings, func(path string) bool { return !atomicfile.Unfinished(path) })
	for _, path := range slices.Concat(settings, joining) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("what an interrupted command left: %w", err)
		}
	}
	return nil
}

// step writes files, and has a unit enabled and running with them. What fails takes back
// all of it.
func (m *Machine) step(ctx context.Context, unit string, ready func(context.Context) error, write func() ([]written, error)) error {
	before, err := m.Manager.Unit(ctx, unit)
	if err != nil {
		return err
	}
	if !before.Loaded {
		return fmt.Errorf("the service manager does not know %s: is the package installed?", unit)
	}
	if err := m.removeUnfinished(); err != nil {
		return err
	}
	files, err := write()
	changed := false
	for _, w := range files {
		changed = changed || w.changed()
	}
	if err == nil && !before.Enabled {
		err = m.Manager.Enable(ctx, unit)
	}
	if err == nil {
		switch {
		case !before.Running():
			err = m.Manager.Start(ctx, unit)
		case changed:
			err = m.Manager.Restart(ctx, unit)
		}
	}
	if err == nil && ready != nil {
		err = ready(ctx)
	}
	if err == nil {
		return nil
	}
	// Also where ctx has ended.
	return errors.Join(err, m.takeBack(context.WithoutCancel(ctx), unit, before, changed, files))
}

// takeBack has files and unit as they were before a step.
func (m *Machine) takeBack(ctx context.Context, unit string, before Unit, changed bool, files []written) error {
	var errs []error
	for i := len(files) - 1; i >= 0; i-- {
		errs = append(errs, files[i].takeBack())
	}
	switch {
	case !before.Running():
		errs = append(errs, m.Manager.Stop(ctx, unit))
	case changed:
		errs = append(errs, m.Manager.Restart(ctx, unit))
	}
	if !before.Enabled {
		errs = append(errs, m.Manager.Disable(ctx, unit))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("what was begun could not be taken back: %w", err)
	}
	return nil
}

// Stop ends agent and orchestrator, and has neither started after a boot. Their data stays.
// It goes on after an error.
func (m *Machine) Stop(ctx context.Context) error {
	var errs []error
	for _, unit := range []string{AgentUnit, OrchestratorUnit} {
		u, err := m.Manager.Unit(ctx, unit)
		if err != nil {
			return err
		}
		if u.Enabled {
			errs = append(errs, m.Manager.Disable(ctx, unit))
		}
		if u.Running() || u.Active == "failed" {
			errs = append(errs, m.Manager.Stop(ctx, unit))
		}
	}
	return errors.Join(errs...)
}

// written is a file that a step has written, and what it had before.
type written struct {
	path       string
	was, is    string
	there      bool
	mode, past os.FileMode
	uid        int // owner; -1: this user
	done       bool
}

// put replaces a file where its text is another, or its mode where it has an owner. Mode
// is that of a new one, and of one with an owner.
func put(path, text string, mode os.FileMode, uid int) (written, error) {
	w := written{path: path, is: text, mode: mode, past: mode, uid: uid}
	b, err := inputfile.Read(path, maxEnvFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w, err
	}
	if err == nil {
		w.was, w.there = string(b), true
		if st, err := os.Stat(path); err == nil {
			w.past = st.Mode().Perm()
		}
		if uid < 0 { // a person may have made it unreadable for others
			w.mode = w.past
		}
	}
	if !w.changed() {
		return w, nil
	}
	// The folder is the package's, with the mode that it has there.
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return w, err
	}
	if err := atomicfile.Write(path, []byte(text), w.mode); err != nil {
		return w, err
	}
	w.done = true
	if uid >= 0 {
		return w, os.Chown(path, uid, -1)
	}
	return w, nil
}

func (w *written) changed() bool { return !w.there || w.was != w.is || w.mode != w.past }

func (w *written) takeBack() error {
	switch {
	case !w.done:
		return nil
	case !w.there:
		return os.Remove(w.path)
	}
	err := atomicfile.Write(w.path, []byte(w.was), w.past)
	if err == nil && w.uid >= 0 {
		err = os.Chown(w.path, w.uid, -1)
	}
	return err
}
