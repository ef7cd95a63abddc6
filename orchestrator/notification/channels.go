package notification

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/service"
	"linktrial/orchestrator/notification/notificationdb"
	"linktrial/orchestrator/store"
)

// sealedFor keeps a secret that is sealed here from being opened for anything else.
const sealedFor = "linktrial notification channel v1\x00"

// Channels returns all channels by name, with how their deliveries went.
func (n *Notifier) Channels(ctx context.Context) ([]Channel, error) {
	rows, err := n.db.Channels(ctx)
	if err != nil {
		return nil, fmt.Errorf("notification channels: %w", err)
	}
	out := make([]Channel, len(rows))
	for i := range rows {
		r := &rows[i]
		c, err := asChannel(&notificationdb.NotificationChannel{Name: r.Name, Version: r.Version, Off: r.Off, Kinds: r.Kinds, Way: r.Way, Settings: r.Settings, Sealed: r.Sealed})
		if err != nil {
			return nil, err
		}
		c.State = State{Delivered: int(r.Delivered), GivenUp: int(r.GivenUp), Waiting: int(r.Waiting), Error: r.Error, DeliveredAt: orZero(r.DeliveredAt), FailedAt: orZero(r.FailedAt)}
		if r.Waiting > 0 {
			c.State.NextTry = r.NextTry
		}
		out[i] = c
	}
	return out, nil
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func asChannel(r *notificationdb.NotificationChannel) (Channel, error) {
	c := Channel{Name: r.Name, Version: int(r.Version), Off: r.Off, Kinds: r.Kinds, Way: Way(r.Way), HasSecret: r.Sealed != nil}
	if err := json.Unmarshal(r.Settings, &c.Settings); err != nil {
		return c, fmt.Errorf("settings of notification channel %s: %w", r.Name, err)
	}
	return c, nil
}

// Secret is what a change does to the secret of a channel; the zero value leaves it as it is.
type Secret struct {
	New    string
	Remove bool
}

// Save adds a channel of version 0, or changes the one of its version. It returns [ErrInvalid],
// [ErrNotFound] or [ErrChanged] where nothing was saved, and the channel as it is now otherwise.
func (n *Notifier) Save(ctx context.Context, c Channel, secret Secret) (Channel, error) {
	if err := c.check(); err != nil {
		return c, err
	}
	if len(secret.New) > maxSecret {
		return c, invalid("the secret has %d bytes, expected at most %d", len(secret.New), maxSecret)
	}
	if secret.New != "" && secret.Remove {
		return c, invalid("a secret is given, and is to be removed: expected one of the two")
	}
	err := n.cfg.Store.InTx(ctx, func(tx store.Conn) error { return n.save(ctx, notificationdb.New(tx), &c, secret) })
	if err != nil {
		return c, err
	}
	if err := n.restart(ctx, c.Name); err != nil {
		return c, err
	}
	all, err := n.Channels(ctx)
	if err != nil {
		return c, err
	}
	for _, x := range all {
		if x.Name == c.Name {
			return x, nil
		}
	}
	return c, fmt.Errorf("notification channel %q: %w", c.Name, ErrNotFound) // removed meanwhile
}

func (n *Notifier) save(ctx context.Context, q *notificationdb.Queries, c *Channel, secret Secret) error {
	old, err := q.ChannelForUpdate(ctx, c.Name)
	exists := !errors.Is(err, pgx.ErrNoRows)
	switch {
	case exists && err != nil:
		return fmt.Errorf("notification channel: %w", err)
	case exists && c.Version == 0:
		return fmt.Errorf("notification channel %q %w: there is one of this name; change that one, or choose another name", c.Name, ErrChanged)
	case exists && int(old.Version) != c.Version:
		return fmt.Errorf("notification channel %q %w: it is in version %d, and version %d was edited; read it again", c.Name, ErrChanged, old.Version, c.Version)
	case !exists && c.Version != 0:
		return fmt.Errorf("notification channel %q: %w", c.Name, ErrNotFound)
	}
	identity, sealed := old.Identity, old.Sealed
	if !exists {
		identity = newIdentity()
	}
	if exists && sealed != nil {
		before, err := asChannel(&old)
		if err != nil {
			return err
		}
		if before.destination() != c.destination() && secret.New == "" && !secret.Remove {
			return invalid("the channel now sends elsewhere than its secret was given for: give the secret again, or remove it")
		}
	}
	switch {
	case secret.Remove:
		sealed = nil
	case secret.New != "":
		sealed = n.key.Seal(sealedFor+identity, []byte(secret.New))
	}
	if c.Way == WayEmail && (c.Settings.User != "") != (sealed != nil) {
		if sealed == nil {
			return invalid("the password of %s at the mail server is missing: give it as the channel's secret, or leave the user out", c.Settings.User)
		}
		return invalid("a password is given without a user at the mail server: give the user, or remove the secret")
	}
	return n.write(ctx, q, c, exists, identity, sealed)
}

func (n *Notifier) write(ctx context.Context, q *notificationdb.Queries, c *Channel, exists bool, identity string, sealed []byte) error {
	settings, err := json.Marshal(c.Settings)
	if err != nil {
		return err
	}
	if c.Kinds == nil {
		c.Kinds = []string{}
	}
	if exists {
		if err := q.UpdateChannel(ctx, notificationdb.UpdateChannelParams{Name: c.Name, Off: c.Off, Kinds: c.Kinds, Way: string(c.Way), Settings: settings, Sealed: sealed}); err != nil {
			return fmt.Errorf("save notification channel: %w", err)
		}
		if c.Off {
			return q.DropWaiting(ctx, c.Name)
		}
		return nil
	}
	count, err := q.CountChannels(ctx)
	if err != nil {
		return fmt.Errorf("notification channels: %w", err)
	}
	if count >= maxChannels {
		return invalid("there are %d notification channels, expected at most %d: remove one first", count, maxChannels)
	}
	added, err := q.InsertChannel(ctx, notificationdb.InsertChannelParams{Name: c.Name, Identity: identity, Off: c.Off, Kinds: c.Kinds, Way: string(c.Way), Settings: settings, Sealed: sealed})
	if err == nil && added == 0 {
		return fmt.Errorf("notification channel %q %w: somebody has just added one of this name", c.Name, ErrChanged)
	}
	if err != nil {
		return fmt.Errorf("save notification channel: %w", err)
	}
	return nil
}

func newIdentity() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Remove removes a channel with its secret and what waits for it.
func (n *Notifier) Remove(ctx context.Context, name string) error {
	removed, err := n.db.DeleteChannel(ctx, name)
	if err != nil {
		return fmt.Errorf("remove notification channel: %w", err)
	}
	if removed == 0 {
		return fmt.Errorf("notification channel %q: %w", name, ErrNotFound)
	}
	n.workers.put(name, nil, nil)
	return nil
}

// Test sends a test message by a channel, also by one that is off. failure says why it was not
// delivered; empty: it was.
func (n *Notifier) Test(ctx context.Context, name string) (failure string, err error) {
	row, err := n.db.Channel(ctx, name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("notification channel %q: %w", name, ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("notification channel: %w", err)
	}
	w, err := n.newWorker(&row)
	if err != nil {
		return "", err
	}
	now := n.cfg.Now()
	m := message{id: -now.UnixMilli(), kind: test, at: now, title: "Test of the notification channel " + row.Name, text: "Somebody has tried this channel. Nothing has happened.", path: "/notifications"}
	if failed := w.try(ctx, []message{m}); failed != nil {
		return shown(failed, &w.channel, w.secret), nil
	}
	return "", nil
}

// restart has a channel delivered as it is stored now.
func (n *Notifier) restart(ctx context.Context, name string) error {
	row, err := n.db.Channel(ctx, name)
	if errors.Is(err, pgx.ErrNoRows) {
		n.workers.put(name, nil, nil)
		return nil
	}
	if err != nil {
		return fmt.Errorf("notification channel: %w", err)
	}
	if row.Off {
		n.workers.put(name, nil, nil)
		return nil
	}
	w, err := n.newWorker(&row)
	if err != nil {
		return err
	}
	n.workers.put(name, w, n.start)
	return nil
}

// start runs a worker until its stop; the context of a call that changed a channel ends before.
func (n *Notifier) start(w *worker) {
	w.stop = service.Go(n.ctx, w.run)
}

// newWorker returns what delivers by a channel. Where its secret cannot be opened, deliveries
// fail with what to do.
func (n *Notifier) newWorker(r *notificationdb.NotificationChannel) (*worker, error) {
	c, err := asChannel(r)
	if err != nil {
		return nil, err
	}
	w := &worker{n: n, channel: c, wake: make(chan struct{}, 1)}
	if r.Sealed != nil {
		plain, err := n.key.Open(sealedFor+r.Identity, r.Sealed)
		if err != nil {
			w.by = unreadable{}
			return w, nil
		}
		w.secret = string(plain)
	}
	if c.Way == WayEmail {
		w.by = &email{channel: &w.channel, identity: r.Identity, secret: w.secret, pages: n.cfg.Pages, tls: n.tls()}
	} else {
		w.by = &webhook{channel: &w.channel, identity: r.Identity, secret: w.secret, version: n.cfg.Version, pages: n.cfg.Pages, now: n.cfg.Now, client: newHTTP(n.tls())}
	}
	return w, nil
}

// unreadable is a channel whose secret is sealed with another key.
type unreadable struct{}

func (unreadable) most() int { return 1 }

func (unreadable) deliver(context.Context, []message) error {
	return errors.New("the secret of this channel cannot be read: it was sealed with another key than this orchestrator's, as after a restore; give the secret again")
}
