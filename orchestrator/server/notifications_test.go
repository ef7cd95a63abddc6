package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

func notificationsOf(c *clients) linktrialv1connect.NotificationServiceClient {
	return linktrialv1connect.NewNotificationServiceClient(c.http, c.base, connect.WithGRPC())
}

func webhookTo(name, url string) *linktrialv1.Channel {
	return &linktrialv1.Channel{Name: name, Settings: &linktrialv1.Channel_Webhook{Webhook: &linktrialv1.WebhookSettings{Url: url}}}
}

// lines is a log that a test reads while others write.
type lines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// A campaign is told by the webhook that answers while another one hangs, which delays
// neither that nor the campaign; watchers get the same, and no log has a secret.
func TestNotificationsOfACampaign(t *testing.T) {
	const secret = "very-secret-indeed"
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	bodies := make(chan string, 10)
	good := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- string(b)
	}))
	t.Cleanup(good.Close)
	log := &lines{}
	s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) {
		c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	n := notificationsOf(s.clients)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for name, url := range map[string]string{"hanging": hanging.URL + "/path-that-is-secret", "good": good.URL} {
		res, err := n.SaveChannel(ctx, connect.NewRequest(&linktrialv1.SaveChannelRequest{Channel: webhookTo(name, url), Secret: secret}))
		require.NoError(t, err)
		require.True(t, res.Msg.Channel.HasSecret)
		require.NotContains(t, res.Msg.String(), secret)
	}
	stream, err := n.WatchNotifications(ctx, connect.NewRequest(&linktrialv1.WatchNotificationsRequest{}))
	require.NoError(t, err)
	defer stream.Close()
	cast(t, s.clients)
	started := s.start(t, fmt.Sprintf(testPlan, "1 KiB"))
	began := time.Now()
	l := newLedger(t)
	require.NoError(t, s.watch(ctx, started.CampaignId, l.event))
	l.complete(1)
	require.Less(t, time.Since(began), 15*time.Second, "the limit of one try")

	for _, kind := range []string{"run-ended", "campaign-ended"} {
		require.True(t, stream.Receive(), stream.Err())
		got := stream.Msg().Notification
		require.Equal(t, []string{kind, started.CampaignId, "/runs/" + started.CampaignId}, []string{got.Kind, got.CampaignId, got.Path})
		select {
		case body := <-bodies:
			require.Contains(t, body, `"kind":"`+kind+`"`)
			require.Contains(t, body, `"url":"`+s.base+"/runs/"+started.CampaignId)
		case <-ctx.Done():
			t.Fatal("the webhook that answers was told nothing")
		}
	}
	require.Less(t, time.Since(began), 15*time.Second)
	list, err := n.ListNotifications(ctx, connect.NewRequest(&linktrialv1.ListNotificationsRequest{}))
	require.NoError(t, err)
	require.Len(t, list.Msg.Notifications, 2)
	require.Equal(t, "campaign-ended", list.Msg.Notifications[0].Kind)
	require.NotEmpty(t, list.Msg.Kinds)
	channels := func() map[string]*linktrialv1.ChannelState {
		res, err := n.ListChannels(ctx, connect.NewRequest(&linktrialv1.ListChannelsRequest{}))
		require.NoError(t, err)
		require.NotContains(t, res.Msg.String(), secret)
		out := map[string]*linktrialv1.ChannelState{}
		for _, c := range res.Msg.Channels {
			out[c.Name] = c.State
		}
		return out
	}
	require.Eventually(t, func() bool { return channels()["hanging"].Error != "" }, 40*time.Second, 100*time.Millisecond)
	state := channels()["hanging"]
	require.Contains(t, state.Error, "no answer in time")
	require.EqualValues(t, 2, state.Waiting)
	require.NotNil(t, state.NextTry)
	require.EqualValues(t, 2, channels()["good"].Delivered)
	for _, text := range []string{secret, "path-that-is-secret"} {
		require.NotContains(t, log.String()+state.Error, text)
	}
	refused[linktrialv1.SaveChannelResponse](t, connect.CodeInvalidArgument, "has a user or a password")(
		n.SaveChannel(ctx, connect.NewRequest(&linktrialv1.SaveChannelRequest{Channel: webhookTo("x", "http://ada:hunter2@127.0.0.1/")})))
	refused[linktrialv1.SaveChannelResponse](t, connect.CodeFailedPrecondition, "there is one of this name")(
		n.SaveChannel(ctx, connect.NewRequest(&linktrialv1.SaveChannelRequest{Channel: webhookTo("good", good.URL)})))
	refused[linktrialv1.SaveChannelResponse](t, connect.CodeInvalidArgument, "expected a text in one line")(n.SaveChannel(ctx, connect.NewRequest(&linktrialv1.SaveChannelRequest{})))
	refused[linktrialv1.RemoveChannelResponse](t, connect.CodeNotFound, "there is no such channel")(n.RemoveChannel(ctx, connect.NewRequest(&linktrialv1.RemoveChannelRequest{Name: "x"})))
	refused[linktrialv1.ListNotificationsResponse](t, connect.CodeInvalidArgument, "limit 501, expected 1 to 500")(n.ListNotifications(ctx, connect.NewRequest(&linktrialv1.ListNotificationsRequest{Limit: 501})))
	_, err = n.RemoveChannel(ctx, connect.NewRequest(&linktrialv1.RemoveChannelRequest{Name: "hanging"}))
	require.NoError(t, err)
}

// Channels are for admins; the audit log has who changed which, and nothing that is secret.
func TestChannelsAreForAdmins(t *testing.T) {
	s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) { c.Login = true })
	setup, err := os.ReadFile(filepath.Join(s.data, access.SetupFile))
	require.NoError(t, err)
	call := func(token, procedure, body string) (int, string) {
		return post(t, s.base, "/linktrial.v1."+procedure, token, "application/json", []byte(body))
	}
	tokens := map[string]string{"": strings.TrimSpace(string(setup))}
	for _, user := range []string{"ADMIN", "DIRECTOR"} {
		status, text := call(tokens[map[bool]string{true: "", false: "ADMIN"}[user == "ADMIN"]], "AccessService/AddUser", `{"name":"u`+strings.ToLower(user)+`","role":"ROLE_`+user+`","password":"correct horse battery"}`)
		require.Equal(t, http.StatusOK, status, text)
		_, text = call("", "AccessService/Login", `{"user":"u`+strings.ToLower(user)+`","password":"correct horse battery","tokenName":"x"}`)
		var in struct{ Token string }
		require.NoError(t, json.Unmarshal([]byte(text), &in), text)
		tokens[user] = in.Token
	}
	const save = `{"channel":{"name":"chat","webhook":{"url":"http://127.0.0.1:9/hidden-path"}},"secret":"very-secret-indeed"}`
	for _, procedure := range []string{"ListChannels", "SaveChannel", "RemoveChannel", "TestChannel"} {
		status, _ := call(tokens["DIRECTOR"], "NotificationService/"+procedure, save)
		require.Equal(t, http.StatusForbidden, status, procedure)
	}
	status, text := call(tokens["DIRECTOR"], "NotificationService/ListNotifications", "{}")
	require.Equal(t, http.StatusOK, status, text)
	status, text = call(tokens["ADMIN"], "NotificationService/SaveChannel", save)
	require.Equal(t, http.StatusOK, status, text)
	require.NotContains(t, text, "very-secret-indeed")
	status, text = call(tokens["ADMIN"], "NotificationService/TestChannel", `{"name":"chat"}`)
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "connection refused")
	require.NotContains(t, text, "hidden-path")
	status, text = call(tokens["ADMIN"], "AccessService/ListAudit", "{}")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "NotificationService.SaveChannel")
	require.Contains(t, text, "to=http://127.0.0.1:9 new secret")
	require.NotContains(t, text, "very-secret-indeed")
	require.NotContains(t, text, "hidden-path")
}
