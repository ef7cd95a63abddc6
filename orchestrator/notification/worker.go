package notification

import (
	"context"
	"errors"
	"net/textproto"
	"sync"
	"time"

	"github.com/wneessen/go-mail"

	"linktrial/internal/backoff"
	"linktrial/orchestrator/notification/notificationdb"
)

// deliverer sends messages by one channel, all or none of them as far as it can tell.
type deliverer interface {
	deliver(ctx context.Context, all []message) error
	most() int // messages in one delivery
}

// Limits bound deliveries; the zero value of a field is its default.
type Limits struct {
	Try         time.Duration // one try: 15 s
	First, Last time.Duration // the shortest and the longest pause between tries: 1 s, 10 min
	GiveUp      time.Duration // after which a notification is given up: 24 h
	Refusals    int           // tries where a server refuses for good, such as with 404: 5
}

func (l *Limits) defaults() {
	for _, x := range []struct {
		d       *time.Duration
		initial time.Duration
	}{{&l.Try, 15 * time.Second}, {&l.First, time.Second}, {&l.Last, 10 * time.Minute}, {&l.GiveUp, 24 * time.Hour}} {
		if *x.d == 0 {
			*x.d = x.initial
		}
	}
	if l.Refusals == 0 {
		l.Refusals = 5
	}
}

// pause returns how long to wait after so many tries.
func (l *Limits) pause(tries int) time.Duration {
	b := backoff.Backoff{Min: l.First, Max: l.Last, Jitter: true}
	var d time.Duration
	for range min(tries, 30) {
		d = b.Next()
	}
	return d
}

// askAgain is how long a worker waits after a fault of the database, and how long it waits at
// most where nobody woke it.
const askAgain = 5 * time.Second

// worker delivers by one channel, in order; what it waits for delays no other channel.
type worker struct {
	n       *Notifier
	channel Channel
	secret  string
	by      deliverer
	wake    chan struct{}
	stop    func()
}

func (w *worker) look() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *worker) run(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		wait, err := w.turn(ctx)
		if err != nil && ctx.Err() == nil {
			if !failing {
				w.n.log.Error("deliveries of a notification channel cannot be read or stored; this is tried again", "channel", w.channel.Name, "error", err)
			}
			wait = askAgain
		}
		failing = err != nil
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-t.C:
		}
		t.Stop()
	}
}

// turn delivers what is due, and returns how long nothing is.
func (w *worker) turn(ctx context.Context) (time.Duration, error) {
	rows, err := w.n.db.Outbox(ctx, notificationdb.OutboxParams{Channel: w.channel.Name, Most: maxDigest})
	if err != nil || len(rows) == 0 {
		return askAgain, err
	}
	if early := rows[0].NextTry.Sub(w.n.cfg.Now()); early > 0 { // order is kept: the others wait, too
		return min(early, askAgain), nil
	}
	if len(rows) < digestFrom || w.by.most() == 1 {
		rows = rows[:1]
	}
	all, ids := make([]message, len(rows)), make([]int64, len(rows))
	for i := range rows {
		all[i], ids[i] = asMessage(&rows[i]), rows[i].ID
	}
	failed := w.try(ctx, all)
	if ctx.Err() != nil { // the orchestrator stops, or the channel was changed: nothing is known
		return 0, ctx.Err()
	}
	if failed == nil {
		now := w.n.cfg.Now()
		return 0, w.n.db.Delivered(ctx, notificationdb.DeliveredParams{Channel: w.channel.Name, Ids: ids, Now: &now})
	}
	return 0, w.failed(ctx, rows, failed)
}

// failed stores that a delivery failed, and when it is tried again: by each notification for
// itself, as those of one mail can be of different ages.
func (w *worker) failed(ctx context.Context, rows []notificationdb.OutboxRow, failed error) error {
	limits, now := &w.n.cfg.Limits, w.n.cfg.Now()
	next := now.Add(limits.pause(int(rows[0].Tries) + 1))
	ids := map[bool][]int64{} // by whether they are given up
	for i := range rows {
		r := &rows[i]
		giveUp := lasting(failed) && int(r.Tries)+1 >= limits.Refusals || next.Sub(r.CreatedAt) >= limits.GiveUp
		ids[giveUp] = append(ids[giveUp], r.ID)
	}
	text := shown(failed, &w.channel, w.secret)
	w.n.log.Warn("a notification was not delivered", "channel", w.channel.Name, "notification", rows[0].ID, "tries", rows[0].Tries+1, "given_up", len(ids[true]), "error", text)
	for _, giveUp := range []bool{true, false} {
		if len(ids[giveUp]) == 0 {
			continue
		}
		if err := w.n.db.Failed(ctx, notificationdb.FailedParams{Channel: w.channel.Name, Ids: ids[giveUp], Error: text, Now: now, NextTry: next, GiveUp: giveUp}); err != nil {
			return err
		}
	}
	return nil
}

// try makes one try, which ends in a stated time.
func (w *worker) try(ctx context.Context, all []message) error {
	ctx, cancel := context.WithTimeout(ctx, w.n.cfg.Limits.Try)
	defer cancel()
	return w.by.deliver(ctx, all)
}

// lasting reports whether a server has refused for good.
func lasting(err error) bool {
	var answered *answerError
	if errors.As(err, &answered) {
		return answered.lasting()
	}
	var sent *mail.SendError
	if errors.As(err, &sent) {
		return !sent.IsTemp() && sent.ErrorCode() >= 500
	}
	var smtp *textproto.Error
	return errors.As(err, &smtp) && smtp.Code >= 500
}

func asMessage(r *notificationdb.OutboxRow) message {
	return message{id: r.ID, kind: r.Kind, at: r.At, title: r.Title, text: r.Body, campaign: r.CampaignID, run: r.RunID, node: r.Node, urgent: r.Urgent, path: r.Path}
}

// workers are those of all channels that are on.
type workers struct {
	mu      sync.Mutex
	stopped bool
	byName  map[string]*worker
}

// wakeAll makes every worker look at what is to be delivered. It does not block.
func (s *workers) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.byName {
		w.look()
	}
}

// put has a worker take the place of the one before, which it waits for; nil: of none.
func (s *workers) put(name string, w *worker, start func(*worker)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.byName[name]; old != nil {
		old.stop()
		delete(s.byName, name)
	}
	if w != nil && !s.stopped {
		start(w)
		s.byName[name] = w
	}
}

// end ends all of them.
func (s *workers) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	var group sync.WaitGroup
	for name, w := range s.byName {
		group.Go(w.stop)
		delete(s.byName, name)
	}
	group.Wait()
}
