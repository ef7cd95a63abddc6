package people

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/setting"
)

// board answers as an orchestrator with one notification and the channels that were saved.
type board struct {
	linktrialv1connect.UnimplementedNotificationServiceHandler

	saved   []*linktrialv1.SaveChannelRequest
	channel *linktrialv1.Channel
	failure string
}

var one = &linktrialv1.Notification{Id: 7, Kind: "run-failed", At: timestamppb.New(time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC)), Title: "a run\x1b[31m was stopped", Text: "The disk is full.", Urgent: true}

func (b *board) ListNotifications(context.Context, *connect.Request[linktrialv1.ListNotificationsRequest]) (*connect.Response[linktrialv1.ListNotificationsResponse], error) {
	return connect.NewResponse(&linktrialv1.ListNotificationsResponse{Notifications: []*linktrialv1.Notification{one}}), nil
}

func (b *board) WatchNotifications(_ context.Context, req *connect.Request[linktrialv1.WatchNotificationsRequest], stream *connect.ServerStream[linktrialv1.WatchNotificationsResponse]) error {
	return stream.Send(&linktrialv1.WatchNotificationsResponse{Notification: &linktrialv1.Notification{Id: req.Msg.After + 1, Kind: "run-ended", At: one.At, Title: "after seven"}})
}

func (b *board) ListChannels(context.Context, *connect.Request[linktrialv1.ListChannelsRequest]) (*connect.Response[linktrialv1.ListChannelsResponse], error) {
	out := &linktrialv1.ListChannelsResponse{}
	if b.channel != nil {
		out.Channels = append(out.Channels, b.channel)
	}
	return connect.NewResponse(out), nil
}

func (b *board) SaveChannel(_ context.Context, req *connect.Request[linktrialv1.SaveChannelRequest]) (*connect.Response[linktrialv1.SaveChannelResponse], error) {
	b.saved = append(b.saved, req.Msg)
	return connect.NewResponse(&linktrialv1.SaveChannelResponse{Channel: req.Msg.Channel}), nil
}

func (b *board) TestChannel(context.Context, *connect.Request[linktrialv1.TestChannelRequest]) (*connect.Response[linktrialv1.TestChannelResponse], error) {
	return connect.NewResponse(&linktrialv1.TestChannelResponse{Error: b.failure}), nil
}

func TestNotificationCommands(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	b := &board{}
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewNotificationServiceHandler(b))
	s := httptest.NewUnstartedServer(mux)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	do := func(stdin string, args ...string) (string, error) {
		cmd := newNotifications(&setting.Settings{Orchestrator: s.URL})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetIn(strings.NewReader(stdin))
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := do("", "--texts")
	require.NoError(t, err)
	require.Contains(t, out, "2026-05-01 08:30:00 UTC ! run-failed       a run")
	require.Contains(t, out, "The disk is full.")
	require.NotContains(t, out, "\x1b")
	out, err = do("", "--follow")
	require.NoError(t, err)
	require.Contains(t, out, "after seven")

	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("top secret\nand more\n"), 0o600))
	out, err = do("", "channels", "add", "webhook", "my chat", "--url", "https://example.org/", "--secret-file", file, "--kinds", "run-failed,run-ended")
	require.NoError(t, err)
	require.Contains(t, out, "channels test 'my chat'")
	require.NotContains(t, out, "top secret")
	require.Equal(t, "top secret", b.saved[0].Secret)
	require.Equal(t, []string{"run-failed", "run-ended"}, b.saved[0].Channel.Kinds)
	_, err = do("", "channels", "add", "webhook", "x", "--url", "https://example.org/", "--secret-file", "-")
	require.ErrorContains(t, err, "--secret-file: its first line is empty")
	_, err = do("pass\r\n", "channels", "add", "email", "team", "--host", "mail", "--from", "a@b.c", "--to", "d@e.f,g@h.i", "--user", "ada", "--secret-file", "-")
	require.NoError(t, err)
	e := b.saved[1].Channel.GetEmail()
	require.Equal(t, "pass", b.saved[1].Secret)
	require.Equal(t, []string{"d@e.f", "g@h.i"}, e.To)
	require.EqualValues(t, 587, e.Port)
	require.Equal(t, linktrialv1.MailSecurity_MAIL_SECURITY_STARTTLS, e.Security)
	_, err = do("", "channels", "add", "email", "team", "--host", "mail", "--from", "a@b.c", "--to", "d@e.f", "--security", "ssl")
	require.ErrorContains(t, err, `--security: "ssl", expected starttls, tls or none`)

	_, err = do("", "channels", "change", "team", "--port", "465")
	require.ErrorContains(t, err, `there is no notification channel "team"`)
	b.channel = b.saved[1].Channel
	b.channel.Version = 3
	_, err = do("", "channels", "change", "team", "--port", "465", "--security", "tls", "--off")
	require.NoError(t, err)
	c := b.saved[2].Channel
	require.Equal(t, []any{int32(465), "mail", true, int32(3), ""}, []any{c.GetEmail().Port, c.GetEmail().Host, c.Off, c.Version, b.saved[2].Secret})
	_, err = do("", "channels", "change", "team", "--url", "https://example.org/")
	require.ErrorContains(t, err, `--url is of webhooks, and "team" is e-mail`)

	_, err = do("", "channels", "test", "team")
	require.NoError(t, err)
	b.failure = "no answer in time"
	_, err = do("", "channels", "test", "team")
	require.ErrorContains(t, err, `the test message was not delivered by "team": no answer in time`)
}
