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
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"google.golang.org/protobuf/proto"

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
	told string // why radios could not be applied last
	last *linktrialv1.InterfaceList
	sent *linktrialv1.InterfaceList // that the orchestrator has
}

// kept is the file.
type kept struct {
	Order  string  `json:"order,omitempty"` // last
	Done   bool    `json:"done,omitempty"`
	Text   string  `json:"text,omitempty"`
	Radios []*held `json:"radios"`
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

// Known reports whether an order was carried out, or refused, already.
func (k *Keeper) Known(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return id == "" || k.kept.Order == id
}

// Carry carries an order out, and reports whether the node's radios are others than before.
// refused: why it is not tried; empty: it is.
func (k *Keeper) Carry(ctx context.Context, o *linktrialv1.RadioOrder, refused string) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	earlier := k.radios()
	text, err := "", error(nil)
	switch {
	case refused != "":
		err = errors.New(refused)
	case o.Remove:
		text, err = k.remove(o.Radio.GetInterface())
	default:
		text, err = k.set(ctx, o.Radio)
	}
	k.kept.Order, k.kept.Done, k.kept.Text = o.Id, err == nil, text
	if err != nil {
		k.kept.Text = err.Error()
	}
	k.log.Info("a radio was ordered", "order", o.Id, "done", k.kept.Done, "text", k.kept.Text)
	if err := k.save(); err != nil {
		k.kept.Done, k.kept.Text = false, strings.TrimPrefix(k.kept.Text+"; "+err.Error(), "; ")
	}
	return !slices.EqualFunc(earlier, k.radios(), Setting.equal)
}

func (s Setting) equal(o Setting) bool { return proto.Equal(s.proto(), o.proto()) }

// set tries a setting, and keeps it. What fails leaves everything as it was.
func (k *Keeper) set(ctx context.Context, r *linktrialv1.NodeRadio) (string, error) {
	s, err := parse(r)
	if err != nil {
		return "", err
	}
	all, err := k.list.list(ctx, nil)
	if err != nil {
		return "", err
	}
	var others []Setting // that stay beside it
	var replaced []*held
	for _, h := range k.kept.Radios {
		if h.Interface == s.Interface || maxRadios(s.Role) == 1 {
			replaced = append(replaced, h)
		} else {
			others = append(others, h.Setting)
		}
	}
	if len(others) >= maxRadios(s.Role) {
		return "", fmt.Errorf("this relay has two radios, %s and %s: remove one of them", others[0].Interface, others[1].Interface)
	}
	if why := refuse(&s, without(all.Interfaces, replaced), others, k.list.addresses(ctx)); why != "" {
		return "", errors.New(why)
	}
	for _, h := range replaced {
		if err := h.takeBack(k.boot); err != nil {
			return "", err
		}
	}
	h, err := k.try(ctx, s)
	if err != nil {
		for _, r := range replaced {
			if aerr := k.again(ctx, r); aerr != nil {
				err = fmt.Errorf("%w; nor is the radio as it was before: %w", err, aerr)
			}
		}
		return "", err
	}
	at := slices.IndexFunc(k.kept.Radios, func(x *held) bool { return slices.Contains(replaced, x) })
	k.kept.Radios = slices.DeleteFunc(k.kept.Radios, func(x *held) bool { return x == h || slices.Contains(replaced, x) })
	if at < 0 {
		at = len(k.kept.Radios)
	}
	k.kept.Radios = slices.Insert(k.kept.Radios, min(at, len(k.kept.Radios)), h)
	return s.words(), nil
}

// try sets a radio up. Before it changes anything the file says so, so that whatever
// happens, the next start takes it back.
func (k *Keeper) try(ctx context.Context, s Setting) (*held, error) {
	h := &held{Setting: s, Trying: true}
	if err := k.note(h); err != nil {
		return nil, err
	}
	k.kept.Radios = append(k.kept.Radios, h)
	err := k.save()
	if err == nil {
		err = s.apply(ctx, true)
	}
	if err == nil {
		h.Trying = false
		return h, nil
	}
	if terr := h.takeBack(k.boot); terr != nil {
		err = fmt.Errorf("%w; nor is it as it was before: %w", err, terr)
	}
	k.kept.Radios = slices.DeleteFunc(k.kept.Radios, func(x *held) bool { return x == h })
	return nil, err
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

// remove gives interfaces back.
func (k *Keeper) remove(name string) (string, error) {
	var gone []*held
	var names []string
	for _, h := range k.kept.Radios {
		if name == "" || h.Interface == name {
			gone, names = append(gone, h), append(names, h.Interface)
		}
	}
	if len(gone) == 0 && name != "" {
		return "", fmt.Errorf("no radio was set up on %s here", name)
	}
	if len(gone) == 0 {
		return "", errors.New("no radio was set up here")
	}
	for _, h := range gone {
		if err := h.takeBack(k.boot); err != nil {
			return "", err
		}
		k.kept.Radios = slices.DeleteFunc(k.kept.Radios, func(x *held) bool { return x == h })
	}
	if len(names) > 1 {
		return strings.Join(names, " and ") + " are as they were before", nil
	}
	return names[0] + " is as it was before", nil
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
	text := ""
	if err := errors.Join(failed...); err != nil {
		text = err.Error()
	}
	if text != k.told && text != "" {
		k.log.Warn("a radio that is kept could not be set up", "reason", text)
	}
	k.told = text
}
