// Package notifying answers NotificationService: what people were told, and the channels by
// which they are. Comes in: the messages of api/proto. Goes out: what orchestrator/notification
// has, never a secret.
package notifying

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/notification"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/security/access"
)

// Service is NotificationService.
type Service struct {
	notifier *notification.Notifier
	log      *slog.Logger
	stopping <-chan struct{}
}

// New returns the service. log gets errors that are not the caller's; streams end when stopping
// is closed.
func New(n *notification.Notifier, log *slog.Logger, stopping <-chan struct{}) *Service {
	return &Service{n, log, stopping}
}

func (s *Service) answer(ctx context.Context, call string, err error) error {
	switch {
	case errors.Is(err, notification.ErrInvalid):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, notification.ErrNotFound):
		return connect.NewError(connect.CodeNotFound, err)
	case errors.Is(err, notification.ErrChanged):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return reply.Error(ctx, s.log, call, err)
}

// ListNotifications implements NotificationService.
func (s *Service) ListNotifications(ctx context.Context, req *connect.Request[linktrialv1.ListNotificationsRequest]) (*connect.Response[linktrialv1.ListNotificationsResponse], error) {
	all, err := s.notifier.List(ctx, req.Msg.Before, int(req.Msg.Limit))
	if err != nil {
		return nil, s.answer(ctx, "list notifications", err)
	}
	out := &linktrialv1.ListNotificationsResponse{Kinds: kindMessages()}
	for i := range all {
		out.Notifications = append(out.Notifications, message(&all[i]))
	}
	return connect.NewResponse(out), nil
}

// WatchNotifications implements NotificationService.
func (s *Service) WatchNotifications(ctx context.Context, req *connect.Request[linktrialv1.WatchNotificationsRequest], stream *connect.ServerStream[linktrialv1.WatchNotificationsResponse]) error {
	after := req.Msg.After
	if after < 0 {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("after %d, expected the number of a notification", after))
	}
	if after == 0 {
		var err error
		if after, err = s.notifier.Newest(ctx); err != nil {
			return s.answer(ctx, "watch notifications", err)
		}
	}
	// The headers, so that who watches knows that it does: there may be nothing to send for days.
	if err := stream.Send(nil); err != nil {
		return s.answer(ctx, "watch notifications", err)
	}
	for {
		changed := s.notifier.Changed()
		all, err := s.notifier.After(ctx, after)
		if err != nil {
			return s.answer(ctx, "watch notifications", err)
		}
		for i := range all {
			if err := stream.Send(&linktrialv1.WatchNotificationsResponse{Notification: message(&all[i])}); err != nil {
				return s.answer(ctx, "watch notifications", err)
			}
			after = all[i].ID
		}
		if len(all) > 0 {
			continue // there may be more than one page
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s.answer(ctx, "watch notifications", ctx.Err())
		case <-s.stopping:
			return s.answer(ctx, "watch notifications", nodes.ErrStopping)
		}
	}
}

// ListChannels implements NotificationService.
func (s *Service) ListChannels(ctx context.Context, _ *connect.Request[linktrialv1.ListChannelsRequest]) (*connect.Response[linktrialv1.ListChannelsResponse], error) {
	all, err := s.notifier.Channels(ctx)
	if err != nil {
		return nil, s.answer(ctx, "list notification channels", err)
	}
	out := &linktrialv1.ListChannelsResponse{Kinds: kindMessages()}
	for i := range all {
		out.Channels = append(out.Channels, channelMessage(&all[i]))
	}
	return connect.NewResponse(out), nil
}

// SaveChannel implements NotificationService.
func (s *Service) SaveChannel(ctx context.Context, req *connect.Request[linktrialv1.SaveChannelRequest]) (*connect.Response[linktrialv1.SaveChannelResponse], error) {
	c := channelOf(req.Msg.Channel)
	access.Note(ctx, saved(&c, req.Msg), "")
	now, err := s.notifier.Save(ctx, c, notification.Secret{New: req.Msg.Secret, Remove: req.Msg.RemoveSecret})
	if err != nil {
		return nil, s.answer(ctx, "save notification channel", err)
	}
	return connect.NewResponse(&linktrialv1.SaveChannelResponse{Channel: channelMessage(&now)}), nil
}

// saved tells the audit log what was saved; a webhook's URL, whose path can be a secret, only
// as its host.
func saved(c *notification.Channel, m *linktrialv1.SaveChannelRequest) string {
	words := []string{fmt.Sprintf("channel=%q", c.Name), fmt.Sprintf("version=%d", c.Version), "to=" + c.Place()}
	if c.Way == notification.WayEmail {
		words = append(words, fmt.Sprintf("security=%s user=%q from=%q recipients=%q", c.Settings.Security, c.Settings.User, c.Settings.From, strings.Join(c.Settings.To, ",")))
	}
	if c.Off {
		words = append(words, "off")
	}
	if len(c.Kinds) > 0 {
		words = append(words, "kinds="+strings.Join(c.Kinds, ","))
	}
	switch {
	case m.RemoveSecret:
		words = append(words, "secret removed")
	case m.Secret != "":
		words = append(words, "new secret")
	}
	return strings.Join(words, " ")
}

// RemoveChannel implements NotificationService.
func (s *Service) RemoveChannel(ctx context.Context, req *connect.Request[linktrialv1.RemoveChannelRequest]) (*connect.Response[linktrialv1.RemoveChannelResponse], error) {
	if err := s.notifier.Remove(ctx, req.Msg.Name); err != nil {
		return nil, s.answer(ctx, "remove notification channel", err)
	}
	return connect.NewResponse(&linktrialv1.RemoveChannelResponse{}), nil
}

// TestChannel implements NotificationService.
func (s *Service) TestChannel(ctx context.Context, req *connect.Request[linktrialv1.TestChannelRequest]) (*connect.Response[linktrialv1.TestChannelResponse], error) {
	failure, err := s.notifier.Test(ctx, req.Msg.Name)
	if err != nil {
		return nil, s.answer(ctx, "test notification channel", err)
	}
	return connect.NewResponse(&linktrialv1.TestChannelResponse{Error: failure}), nil
}

func kindMessages() (out []*linktrialv1.NotificationKind) {
	for _, k := range notification.Kinds() {
		out = append(out, &linktrialv1.NotificationKind{Key: k.Key, Title: k.Title, About: k.About})
	}
	return out
}

func message(n *notification.Notification) *linktrialv1.Notification {
	return &linktrialv1.Notification{Id: n.ID, Kind: n.Kind, At: timestamppb.New(n.At), Title: n.Title, Text: n.Text, CampaignId: n.Campaign, RunId: n.Run, Node: n.Node, Urgent: n.Urgent, Path: n.Path}
}

var securities = map[linktrialv1.MailSecurity]notification.Security{
	linktrialv1.MailSecurity_MAIL_SECURITY_STARTTLS: notification.StartTLS,
	linktrialv1.MailSecurity_MAIL_SECURITY_TLS:      notification.TLS,
	linktrialv1.MailSecurity_MAIL_SECURITY_NONE:     notification.Plain,
}

// channelOf reads what is to be saved.
func channelOf(m *linktrialv1.Channel) notification.Channel {
	c := notification.Channel{Name: m.GetName(), Version: int(m.GetVersion()), Off: m.GetOff(), Kinds: m.GetKinds()}
	if w := m.GetWebhook(); w != nil {
		c.Way, c.Settings = notification.WayWebhook, notification.Settings{URL: w.Url}
	}
	if e := m.GetEmail(); e != nil {
		c.Way = notification.WayEmail
		c.Settings = notification.Settings{Host: e.Host, Port: int(e.Port), Security: securities[e.Security], User: e.User, From: e.From, To: e.To}
	}
	return c
}

func channelMessage(c *notification.Channel) *linktrialv1.Channel {
	m := &linktrialv1.Channel{Name: c.Name, Version: int32(c.Version), Off: c.Off, Kinds: c.Kinds, HasSecret: c.HasSecret}
	if c.Way == notification.WayWebhook {
		m.Settings = &linktrialv1.Channel_Webhook{Webhook: &linktrialv1.WebhookSettings{Url: c.Settings.URL}}
	} else {
		e := &linktrialv1.EmailSettings{Host: c.Settings.Host, Port: int32(c.Settings.Port), User: c.Settings.User, From: c.Settings.From, To: c.Settings.To}
		for m, s := range securities {
			if s == c.Settings.Security {
				e.Security = m
			}
		}
		m.Settings = &linktrialv1.Channel_Email{Email: e}
	}
	m.State = &linktrialv1.ChannelState{DeliveredAt: stamp(c.State.DeliveredAt), Delivered: int32(c.State.Delivered), Waiting: int32(c.State.Waiting), GivenUp: int32(c.State.GivenUp),
		FailedAt: stamp(c.State.FailedAt), Error: c.State.Error, NextTry: stamp(c.State.NextTry)}
	return m
}

// stamp is unset for the zero time.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
