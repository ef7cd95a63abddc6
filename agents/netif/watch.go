package netif

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/agents/netif/settings"
	"linktrial/internal/notify"
)

// Watch watches the interface of one radio; see [Watches].
type Watch struct {
	// read reads the state, called with the lock; fresh: the settings, too, even where they
	// were read just now.
	read func(known int, fresh bool) State
	// putBack makes the settings again those that they were, and is called with the lock;
	// nil: that is not possible.
	putBack func(is, was *settings.Settings)
	may     func() string    // who may have changed a setting, for people
	guard   *guard           // against other machines with the radio's address; nil: none
	changed *notify.Notifier // of all interfaces that are watched together

	mu   sync.Mutex
	want expected
	// settingUp is until when the settings of an interface that has come back are those
	// that it has.
	settingUp time.Time
	undone    int       // how often settings were put back
	blame     string    // who may have changed those that were not
	last      State     // that the interface had when it was there
	out       string    // what is wrong with the interface itself now
	kernel    string    // what is wrong with the settings of the node's kernel now
	conflict  string    // the hardware address of another machine with the radio's address
	wrong     string    // what is wrong now
	fault     string    // what was wrong last
	until     time.Time // when that was seen last
	back      string    // what was put back last
	backAt    time.Time
}

// setUpWithin is how long an interface that has come back may be set up: who does that
// sets its queueing discipline and routes one after the other.
const setUpWithin = 10 * time.Second

// noticedWithin is for how long settings count as read just now: the kernel tells of
// changes within less, and who asks before and after each of many short attempts would
// read them all the time.
const noticedWithin = 100 * time.Millisecond

// undoAtMost is how often the settings of an interface are put back in a run. Who changes
// them more often than that has to be found.
const undoAtMost = 10

// start watches an interface until stop, which must be called after ctx has ended; who
// calls has it look after each change. It expects the address where the interface has it
// now, and where no MTU is stated, the one that it has now.
func start(ctx context.Context, cfg *Config, r Radio, changed *notify.Notifier) (w *Watch, stop func(), err error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, nil, fmt.Errorf("interface %s cannot be watched: %w", r.Device, err)
	}
	log := cfg.Logger.With("interface", r.Device)
	reads := settings.NewReader(h)
	now := read(h, reads, &r, 0)
	now.settings.Keep()
	// Who asks after the stop gets the last state: the handle is closed then.
	var reading sync.Mutex
	latest, stopped := now, false
	settingsAt := time.Now()
	reader := func(known int, fresh bool) State {
		reading.Lock()
		defer reading.Unlock()
		if stopped {
			return latest
		}
		before, again := &latest, reads
		if !fresh && before.settings != nil && time.Since(settingsAt) < noticedWithin {
			again = nil
		}
		s := read(h, again, &r, known)
		if again == nil && s.Index == before.Index && s.transfers() {
			s.settings = before.settings
		} else if again == nil {
			s = read(h, reads, &r, known)
		}
		if s.settings != before.settings {
			settingsAt = time.Now()
		}
		latest = s
		return latest
	}
	putBack := func(is, was *settings.Settings) {
		reading.Lock()
		defer reading.Unlock()
		if stopped {
			return
		}
		if err := reads.PutBack(r.settings(), is, was); err != nil {
			log.Warn("not all settings of the radio's interface can be put back", "error", err)
		}
	}
	w = &Watch{read: reader, putBack: putBack, may: cfg.mayHave, want: expected{radio: &r, mtu: r.MTU, addressed: now.Addressed, settings: now.settings}, changed: changed}
	if !cfg.Quiet {
		w.guard = newGuard(&r, log)
	}
	if w.want.mtu == 0 {
		w.want.mtu = now.MTU
	}
	if now.Loopback {
		w.want.mtu = 0
	}
	if now.There {
		w.last = now
	}
	w.guard.renew(&now)
	var guarding sync.WaitGroup
	if w.guard != nil {
		guarding.Go(func() { w.guard.keep(ctx, w.claimed) })
	}
	return w, func() {
		guarding.Wait()
		reading.Lock()
		defer reading.Unlock()
		stopped = true
		reads.Close()
		h.Close()
	}, nil
}

// look reads the state, and tells those who wait when it is another one; fresh: the kernel
// has told of a change.
func (w *Watch) look(now time.Time, fresh bool) {
	w.mu.Lock()
	s := w.read(w.last.Index, fresh)
	replaced := s.replaced(&w.last)
	if s.settings == nil { // it cannot be used
		w.want.settings = nil
	}
	if replaced != "" || w.want.settings == nil {
		w.settingUp = now.Add(setUpWithin)
	}
	if now.Before(w.settingUp) {
		w.want.settings = s.settings
		w.want.settings.Keep()
	}
	undone := w.undo(&s)
	out := s.wrong(&w.want) + w.blame
	if mended := out == "" && w.out != ""; mended || replaced != "" {
		w.conflict = "" // asked for again
		w.guard.renew(&s)
	}
	w.out = out
	if s.There {
		w.last = s
	}
	told := w.set(replaced, now)
	if undone != "" {
		w.back, w.backAt, told = undone, now, true
	}
	w.mu.Unlock()
	if told {
		w.changed.Notify()
	}
}

// undo puts settings back that are others than expected, with the lock, reads the state
// again, and says which those were; empty: none was put back.
func (w *Watch) undo(s *State) string {
	before := s.settings.Changed(w.want.settings)
	if len(before) == 0 {
		w.blame = ""
		return ""
	}
	left := before
	if w.putBack != nil && w.undone < undoAtMost {
		w.undone++
		w.putBack(s.settings, w.want.settings)
		*s = w.read(s.Index, true)
		left = s.settings.Changed(w.want.settings)
	}
	if len(left) == 0 {
		w.blame = ""
	} else if w.blame == "" {
		w.blame = w.may()
	}
	var out []string
	for _, c := range before {
		if !slices.ContainsFunc(left, func(l settings.Change) bool { return l.Name == c.Name }) {
			out = append(out, c.String()+"; the agent has put it back")
		}
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, ", ") + w.may()
}

// set sets what is wrong from what is known, with the lock; told: who waits is to be told.
func (w *Watch) set(replaced string, now time.Time) (told bool) {
	wrong := strings.Join(slices.DeleteFunc([]string{w.out, w.kernel}, func(s string) bool { return s == "" }), ", ")
	switch {
	case wrong != "":
	case w.conflict != "":
		wrong = fmt.Sprintf("another machine on the link has the address %s, too: %s; give one of them another one", w.want.radio.Address, w.conflict)
	case w.fault != "" && w.guard.asking():
		wrong = cmp.Or(replaced, w.wrong)
	}
	told = wrong != w.wrong || replaced != ""
	if fault := cmp.Or(wrong, replaced, w.wrong); fault != "" {
		w.fault, w.until = fault, now
	}
	w.wrong = wrong
	return told
}

// claimed notes which other machine has the radio's address, empty for none, when that has
// been asked for.
func (w *Watch) claimed(mac string) {
	w.mu.Lock()
	w.conflict = mac
	told := w.set("", time.Now())
	w.mu.Unlock()
	if told {
		w.changed.Notify()
	}
}

// node notes what is wrong with the settings of the node's kernel, empty for nothing.
func (w *Watch) node(kernel string) {
	w.mu.Lock()
	told := false
	if w.kernel != kernel {
		w.kernel = kernel
		told = w.set("", time.Now())
	}
	w.mu.Unlock()
	if told {
		w.changed.Notify()
	}
}

// Settled waits until it is known whether another machine has the radio's address when
// the watch begins, or until ctx ends.
func (w *Watch) Settled(ctx context.Context) { w.guard.settled(ctx) }

// Since returns what was wrong at some time since a moment, empty for nothing, and a
// channel that is closed when something else is wrong, or may be. undone: it was put back
// as soon as it was seen.
func (w *Watch) Since(at time.Time) (fault string, undone bool, more <-chan struct{}) {
	more = w.changed.Changed()
	w.look(time.Now(), false)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.fault != "" && (w.wrong != "" || !w.until.Before(at)):
		return w.fault, false, more
	case w.back != "" && !w.backAt.Before(at):
		return w.back, true, more
	}
	return "", false, more
}

// State returns what is wrong now, empty for nothing, and a channel that is closed when
// that changes, or may have.
func (w *Watch) State() (fault string, changed <-chan struct{}) {
	changed = w.changed.Changed()
	w.look(time.Now(), false)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong, changed
}
