package netif

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"linktrial/internal/sysctl"
)

// kernelSettings are those of the node's kernel while its radios are watched. The kernel
// gives no notice of a change, so they are read whenever somebody asks.
type kernelSettings struct {
	log *slog.Logger
	may func() string // who may have changed one, for people

	mu     sync.Mutex
	undone int          // how often some were put back
	blame  string       // who may have changed those that are not put back
	kept   *sysctl.Kept // nil: they cannot be read
}

func keepSettings(log *slog.Logger, may func() string) *kernelSettings {
	kept, err := sysctl.Keep(sysctl.Root)
	if err != nil {
		log.Warn("changes of the kernel's settings are not noticed", "error", err)
	}
	return &kernelSettings{log: log, may: may, kept: kept}
}

// hold puts settings back that were changed, and says which those were, and which still
// are as they should not be. Whoever may change them can do so for the drivers that follow.
func (s *kernelSettings) hold() (was []string, is string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		return nil, ""
	}
	changed := s.kept.Changed()
	if len(changed) == 0 {
		s.blame = ""
		return nil, ""
	}
	left := changed
	if s.undone < undoAtMost {
		s.undone++
		for i := range changed {
			if err := changed[i].PutBack(); err != nil {
				s.log.Debug("a setting of the kernel cannot be put back", "error", err)
			}
		}
		left = s.kept.Changed()
	}
	var wrong []string
	for _, c := range changed {
		what := fmt.Sprintf("the kernel's setting %s was changed to %q and was %q", c.Name, c.Is, c.Was)
		if slices.ContainsFunc(left, func(l sysctl.Change) bool { return l.Name == c.Name }) {
			wrong = append(wrong, fmt.Sprintf("%s: put it back with %q", what, c.Command()))
			continue
		}
		s.log.Warn("a setting of the kernel was changed during the run, and put back", "setting", c.Name, "to", c.Is, "was", c.Was)
		was = append(was, what+"; the agent has put it back")
	}
	if len(was) > 0 {
		was[len(was)-1] += s.may()
	}
	if len(wrong) == 0 {
		s.blame = ""
		return was, ""
	}
	if s.blame == "" {
		s.blame = s.may()
	}
	return was, strings.Join(wrong, ", ") + s.blame
}

func (s *kernelSettings) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		s.kept.Close()
		s.kept = nil
	}
}

// holdSettings looks at the kernel's settings. They are the whole node's: one interface
// stands for all.
func (w *Watches) holdSettings() {
	was, is := w.settings.hold()
	if len(was) > 0 {
		w.each[0].happened(strings.Join(was, ", "))
	}
	w.each[0].node(is)
}
