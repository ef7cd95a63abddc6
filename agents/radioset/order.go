package radioset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

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
		if ferr := forward(k.kept.Radios, k.boot, k.save); ferr != nil {
			err = fmt.Errorf("%w; nor is the radio as it was before: %w", err, ferr)
		}
		return "", err
	}
	at := slices.IndexFunc(k.kept.Radios, func(x *held) bool { return slices.Contains(replaced, x) })
	k.kept.Radios = slices.DeleteFunc(k.kept.Radios, func(x *held) bool { return x == h || slices.Contains(replaced, x) })
	if at < 0 {
		at = len(k.kept.Radios)
	}
	k.kept.Radios = slices.Insert(k.kept.Radios, min(at, len(k.kept.Radios)), h)
	if err := forward(k.kept.Radios, k.boot, k.save); err != nil {
		return s.words() + "; but " + err.Error(), nil
	}
	return s.words() + forwarded(k.kept.Radios), nil
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
	if err := forward(k.kept.Radios, k.boot, k.save); err != nil {
		return "", err
	}
	if len(names) > 1 {
		return strings.Join(names, " and ") + " are as they were before", nil
	}
	return names[0] + " is as it was before", nil
}
