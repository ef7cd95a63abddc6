package radioset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/atomicfile"
	"linktrial/internal/inputfile"
	"linktrial/internal/wallclock"
)

// file is where radios are kept in the state folder, and maxFile its largest size.
const (
	file    = "radios.json"
	maxFile = 64 << 10
)

// Keeper keeps a node's radios. Its methods may be called from several goroutines.
type Keeper struct {
	path string
	boot string
	log  *slog.Logger
	list *lister

	mu   sync.Mutex
	kept kept
	told string // that people were warned of last
	last *linktrialv1.InterfaceList
	sent *linktrialv1.InterfaceList // that the orchestrator has
}

// kept is the file.
type kept struct {
	Order  string  `json:"order,omitempty"` // last
	Done   bool    `json:"done,omitempty"`
	Text   string  `json:"text,omitempty"`
	Radios []*held `json:"radios"`
	// Named are interfaces of radios that came with the agent's configuration.
	Named []string `json:"named,omitempty"`
}

// Config says what a [Keeper] works on.
type Config struct {
	Dir          string // the state folder
	Orchestrator string // its URL
	Logger       *slog.Logger
}

// Open reads the radios that are kept.
func Open(cfg Config) (*Keeper, error) {
	list, err := newLister("/", cfg.Orchestrator)
	if err != nil {
		return nil, err
	}
	k := &Keeper{path: filepath.Join(cfg.Dir, file), boot: wallclock.Boot(), log: cfg.Logger, list: list}
	b, err := inputfile.Read(k.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &k.kept)
	}
	if err != nil {
		return nil, fmt.Errorf("the radios that were set up (%s): %w; remove the file, and set them up again", k.path, err)
	}
	return k, nil
}

// Radios are those that are kept, the first one first.
func (k *Keeper) Radios() []Setting {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.radios()
}

func (k *Keeper) radios() (out []Setting) {
	for _, h := range k.kept.Radios {
		if !h.Trying {
			out = append(out, h.Setting)
		}
	}
	return out
}

// State is what the orchestrator is told. fixed says why no radio can be set up; empty: one
// can.
func (k *Keeper) State(fixed string) *linktrialv1.RadioState {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := &linktrialv1.RadioState{OrderId: k.kept.Order, Done: k.kept.Done, Text: k.kept.Text, Fixed: fixed}
	for _, s := range k.radios() {
		out.Radios = append(out.Radios, s.proto())
	}
	return out
}

func (k *Keeper) save() error {
	b, err := json.MarshalIndent(&k.kept, "", "  ")
	if err == nil {
		err = atomicfile.Write(k.path, append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("the radio is not kept: %w", err)
	}
	return nil
}

// note notes what the interface is before a radio is set up on it, unless it is the one of
// which that is known.
func (k *Keeper) note(h *held) error {
	l, err := netlink.LinkByName(h.Interface)
	if err != nil {
		return fmt.Errorf("interface %s: %w", h.Interface, err)
	}
	if h.Before.Boot == k.boot && h.Before.Index == l.Attrs().Index {
		return nil
	}
	h.Forwarding = false // of another interface
	h.Before, err = h.look(l, k.boot)
	return err
}

// again applies a radio that is kept.
func (k *Keeper) again(ctx context.Context, h *held) error {
	was := h.Before
	if err := k.note(h); err != nil {
		return err
	}
	if was.Index != h.Before.Index || was.Boot != h.Before.Boot {
		if err := k.save(); err != nil {
			return err
		}
	}
	return h.apply(ctx, false)
}

// Restore applies the radios that are kept, at the agent's start and when the kernel tells of
// a change, and takes back what is left of an order that was interrupted.
func (k *Keeper) Restore(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var failed []error
	for _, h := range slices.Clone(k.kept.Radios) { // first: it may have been tried in place of another one
		if h.Trying {
			failed = append(failed, h.takeBack(k.boot))
			k.kept.Radios = slices.DeleteFunc(k.kept.Radios, func(x *held) bool { return x == h })
			failed = append(failed, k.save())
		}
	}
	for _, h := range k.kept.Radios {
		if _, err := netlink.LinkByName(h.Interface); err == nil { // else it is not connected
			failed = append(failed, k.again(ctx, h))
		}
	}
	failed = append(failed, forward(k.kept.Radios, k.boot, k.save))
	if reason := k.news(errors.Join(failed...)); reason != "" {
		k.log.Warn("a radio that is kept could not be set up", "reason", reason)
	}
}

// news is the text of an error that people are to be told; empty: there is none, or it is the
// one of which they were told last.
func (k *Keeper) news(err error) string {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == k.told {
		return ""
	}
	k.told = text
	return text
}
