package notification

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"linktrial/orchestrator/notification/notificationdb"
)

const (
	// lookEvery bounds how often the store is read while much happens; it is looked at
	// least every tick, so that what only time brings is told, too.
	lookEvery = time.Second
	tick      = 5 * time.Second
	// lookLimit bounds one look: a database that does not answer must not hold the watch.
	lookLimit = time.Minute
	// tellWithin is how old an event is told at most, such as one that happened while the
	// orchestrator was not running.
	tellWithin = 24 * time.Hour
	// Notifications are kept so long, and at most so many; those whose events could be told
	// once more are kept anyway.
	keepFor   = 90 * 24 * time.Hour
	keepMost  = 10_000
	keepLeast = 2 * tellWithin
	tidyEvery = time.Hour
)

// Bounds of texts, in characters, as the table has them.
const (
	maxTitle = 300
	maxText  = 4000
)

// event is something that there is to tell, with what it is known by: the same event has the
// same key for ever.
type event struct {
	key string
	Notification
}

// watch looks for what there is to tell until ctx ends.
func (n *Notifier) watch(ctx context.Context) {
	failing := false
	var tidied time.Time
	for ctx.Err() == nil {
		changed := n.cfg.Changed()
		err := n.look(ctx)
		if now := n.cfg.Now(); err == nil && now.Sub(tidied) >= tidyEvery {
			tidied = now
			err = n.tidy(ctx, now)
		}
		if err != nil && ctx.Err() == nil && !failing {
			n.log.Error("notifications cannot be made; this is tried again", "error", err)
		}
		failing = err != nil
		wait(ctx, lookEvery, nil)
		wait(ctx, tick-lookEvery, changed)
	}
}

func wait(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-t.C:
	}
}

// look stores what there is to tell.
func (n *Notifier) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	since := n.cfg.Now().Add(-tellWithin)
	if n.begin.After(since) {
		since = n.begin
	}
	all, err := n.events(ctx, since)
	if err != nil {
		return err
	}
	stored := false
	for i := range all {
		is, err := n.store(ctx, &all[i])
		if err != nil {
			return fmt.Errorf("notification %s: %w", all[i].key, err)
		}
		stored = stored || is
	}
	if stored {
		n.changed.Notify()
		n.workers.wakeAll()
	}
	return nil
}

// store stores an event and what is to be delivered of it. False: it was stored before.
func (n *Notifier) store(ctx context.Context, e *event) (bool, error) {
	id, err := n.db.InsertNotification(ctx, notificationdb.InsertNotificationParams{Event: e.key, Kind: e.Kind, At: e.At, Title: bounded(line(e.Title), maxTitle), Body: bounded(e.Text, maxText),
		CampaignID: e.Campaign, RunID: e.Run, Node: e.Node, Urgent: e.Urgent, Path: e.Path, Now: n.cfg.Now()})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	n.log.Info("notification", "id", id, "kind", e.Kind, "title", e.Title)
	return true, nil
}

func (n *Notifier) tidy(ctx context.Context, now time.Time) error {
	removed, err := n.db.RemoveOldNotifications(ctx, notificationdb.RemoveOldNotificationsParams{Older: now.Add(-keepFor), Told: now.Add(-keepLeast), Most: keepMost})
	if err == nil && removed > 0 {
		n.log.Info("old notifications are removed", "notifications", removed)
	}
	return err
}

// line has no line break and no other control character.
func line(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }), " ")
}

func bounded(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	r := []rune(s)
	r[0] = unicode.ToUpper(r[0])
	s = string(r)
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}
