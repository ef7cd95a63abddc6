package notification

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"linktrial/internal/notify"
	"linktrial/internal/service"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/notification/notificationdb"
	"linktrial/orchestrator/security/sealing"
	"linktrial/orchestrator/store"
)

// keyDir is the folder of the key that seals secrets of channels, in a data folder.
const keyDir = "notification-channels"

// Config says what a [Notifier] works on.
type Config struct {
	Store *store.Store
	// Nodes and Health return what is known of the nodes now.
	Nodes  func() []nodes.Node
	Health func(node string) fleet.Health
	// Changed returns a channel that is closed at the next change of a run or a node.
	Changed func() <-chan struct{}
	DataDir string // empty: secrets of channels can be read until the process ends
	Version string // of the orchestrator
	// Pages is the address of the orchestrator's pages as others reach it, without a slash at
	// its end; empty: it is not known, and messages have no links.
	Pages  string
	Logger *slog.Logger
	Now    func() time.Time // nil: time.Now
	Limits Limits
	Roots  *x509.CertPool // of receivers' certificates; nil: those of the machine
}

// Notifier stores notifications and delivers them. Its methods may be called from several
// goroutines.
type Notifier struct {
	cfg     Config
	db      *notificationdb.Queries
	log     *slog.Logger
	key     sealing.Key
	ctx     context.Context //nolint:containedctx // of its workers, until Stop
	begin   time.Time       // what was before is not told
	changed notify.Notifier
	workers workers
	silent  conditions
	stop    func()
}

// Start begins to look for what there is to tell, and to deliver it. Stop ends that.
func Start(ctx context.Context, cfg Config) (*Notifier, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Limits.defaults()
	n := &Notifier{cfg: cfg, db: notificationdb.New(cfg.Store), log: cfg.Logger, ctx: context.WithoutCancel(ctx), workers: workers{byName: map[string]*worker{}}, silent: conditions{since: map[string]time.Time{}}}
	var err error
	if n.key, err = openKey(cfg.DataDir); err != nil {
		return nil, fmt.Errorf("key of notification channels: %w", err)
	}
	if n.begin, err = n.db.Begin(ctx, cfg.Now()); err != nil {
		return nil, fmt.Errorf("notifications: %w", err)
	}
	all, err := n.db.Channels(ctx)
	if err != nil {
		return nil, fmt.Errorf("notification channels: %w", err)
	}
	for i := range all {
		if err := n.restart(ctx, all[i].Name); err != nil {
			n.workers.end()
			return nil, err
		}
	}
	look := service.Go(n.ctx, n.watch)
	n.stop = func() {
		look()
		n.workers.end()
	}
	return n, nil
}

func openKey(data string) (sealing.Key, error) {
	if data == "" {
		return sealing.Ephemeral()
	}
	return sealing.Open(filepath.Join(data, keyDir), "who could read it and has the database can read the secrets of notification channels; 'chmod 600' it, and give these secrets anew if that may have happened")
}

// Stop ends deliveries, and waits. What waits is delivered after the next start.
func (n *Notifier) Stop() { n.stop() }

func (n *Notifier) tls() *tls.Config {
	return &tls.Config{RootCAs: n.cfg.Roots, MinVersion: tls.VersionTLS12}
}

// Notification is something that people were told, or are to be told.
type Notification struct {
	ID                  int64
	Kind                string
	At                  time.Time
	Title, Text         string
	Campaign, Run, Node string // empty: of none
	Urgent              bool   // something waits for people, or went wrong
	Path                string // of the page that shows it
}

// Bounds of a list.
const (
	usualList = 50
	maxList   = 500
)

// List returns notifications with a smaller number than before, newest first; before 0: from
// the newest. limit 0 is 50; it is at most 500.
func (n *Notifier) List(ctx context.Context, before int64, limit int) ([]Notification, error) {
	switch {
	case limit == 0:
		limit = usualList
	case limit < 0 || limit > maxList:
		return nil, invalid("limit %d, expected 1 to %d", limit, maxList)
	case before < 0:
		return nil, invalid("before %d, expected the number of a notification", before)
	}
	rows, err := n.db.Notifications(ctx, notificationdb.NotificationsParams{Before: before, Most: int32(limit)})
	return asNotifications(rows), err
}

// After returns the notifications after the one with a number, oldest first.
func (n *Notifier) After(ctx context.Context, id int64) ([]Notification, error) {
	rows, err := n.db.NotificationsAfter(ctx, notificationdb.NotificationsAfterParams{After: id, Most: maxList})
	return asNotifications(rows), err
}

// Newest returns the number of the newest notification; 0: there is none.
func (n *Notifier) Newest(ctx context.Context) (int64, error) { return n.db.NewestNotification(ctx) }

// Changed returns a channel that is closed when there are new notifications.
func (n *Notifier) Changed() <-chan struct{} { return n.changed.Changed() }

func asNotifications(rows []notificationdb.Notification) []Notification {
	out := make([]Notification, len(rows))
	for i, r := range rows {
		out[i] = Notification{ID: r.ID, Kind: r.Kind, At: r.At, Title: r.Title, Text: r.Body, Campaign: r.CampaignID, Run: r.RunID, Node: r.Node, Urgent: r.Urgent, Path: r.Path}
	}
	return out
}
