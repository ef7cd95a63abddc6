package notification

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"linktrial/internal/unit"
)

const (
	// digestFrom is how many wait at least when they become one mail.
	digestFrom = 21
	// maxDigest is how many one mail tells of at most.
	maxDigest = 200
	// maxSubject is in characters.
	maxSubject = 150
)

// email delivers by SMTP.
type email struct {
	channel  *Channel
	identity string
	secret   string
	pages    string
	tls      *tls.Config
}

func (e *email) most() int { return maxDigest }

// deliver implements deliverer: one mail, of one notification or of many.
func (e *email) deliver(ctx context.Context, all []message) error {
	m, err := e.compose(all)
	if err != nil {
		return err
	}
	c, err := e.client(ctx)
	if err != nil {
		return err
	}
	if err := c.DialAndSendWithContext(ctx, m); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("the mail server did not answer in time: %w", err)
		}
		return err
	}
	return nil
}

// client makes connections that end with ctx: a server that is silent in the middle of a
// conversation holds nobody.
func (e *email) client(ctx context.Context) (*mail.Client, error) {
	s := &e.channel.Settings
	cfg := e.tls.Clone()
	cfg.ServerName, cfg.MinVersion = s.Host, tls.VersionTLS12
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil || s.Security != TLS {
			return c, err
		}
		secure := tls.Client(c, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return secure, nil
	}
	bounded := func(_ context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = c.Close() })
		return c, nil
	}
	options := []mail.Option{mail.WithPort(s.Port), mail.WithTLSConfig(cfg), mail.WithDialContextFunc(bounded), mail.WithoutNoop()}
	if deadline, ok := ctx.Deadline(); ok {
		options = append(options, mail.WithTimeout(max(time.Until(deadline), time.Millisecond)))
	}
	switch s.Security {
	case StartTLS:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	case TLS:
		options = append(options, mail.WithSSL())
	case Plain:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	}
	if s.User != "" {
		options = append(options, mail.WithSMTPAuthCustom(&login{user: s.User, password: e.secret, host: s.Host}))
	}
	return mail.NewClient(s.Host, options...)
}

// login logs in by a mechanism that the server offers, over TLS alone. The library's own choice
// takes a connection that was encrypted before its greeting for an open one.
type login struct {
	smtp.Auth

	user, password, host string
}

// Start implements smtp.Auth.
func (l *login) Start(server *smtp.ServerInfo) (string, []byte, error) {
	if !server.TLS {
		return "", nil, errors.New("the connection is not encrypted, and the password was not sent")
	}
	for _, m := range []struct {
		name string
		auth smtp.Auth
	}{
		{"PLAIN", smtp.PlainAuth("", l.user, l.password, l.host, false)},
		{"LOGIN", smtp.LoginAuth(l.user, l.password, l.host, false)},
		{"SCRAM-SHA-256", smtp.ScramSHA256Auth(l.user, l.password)},
	} {
		if slices.Contains(server.Auth, m.name) {
			l.Auth = m.auth
			return m.auth.Start(server)
		}
	}
	return "", nil, fmt.Errorf("the mail server offers no login that is known here: expected PLAIN, LOGIN or SCRAM-SHA-256, found %q", strings.Join(server.Auth, " "))
}

// compose makes the mail. Who gets it sees no other recipient's name than the addresses that
// were set.
func (e *email) compose(all []message) (*mail.Msg, error) {
	s := &e.channel.Settings
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := m.From(s.From); err != nil {
		return nil, fmt.Errorf("sender: %w", err)
	}
	if err := m.To(s.To...); err != nil {
		return nil, fmt.Errorf("recipients: %w", err)
	}
	_, domain, _ := strings.Cut(s.From, "@")
	first, last := &all[0], &all[len(all)-1]
	id := deliveryID(e.identity, last.id)
	if len(all) > 1 {
		id = fmt.Sprintf("%s-%d", deliveryID(e.identity, first.id), last.id)
	}
	m.SetMessageIDWithValue(id + "@" + domain)
	m.SetDateWithValue(last.at)
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834
	m.SetGenHeader("X-Mailer", "Linktrial")
	m.Subject(subject(all))
	var text strings.Builder
	for i := range all {
		if i > 0 {
			text.WriteString("\n\n")
		}
		e.write(&text, &all[i], len(all) > 1)
	}
	m.SetBodyString(mail.TypeTextPlain, text.String()+"\n")
	return m, nil
}

// subject is one line: what people named plans and nodes cannot begin another header.
func subject(all []message) string {
	text := all[len(all)-1].title
	if len(all) > 1 {
		text = fmt.Sprintf("%d notifications, the last: %s", len(all), text)
	}
	text = line(text)
	if r := []rune(text); len(r) > maxSubject {
		text = string(r[:maxSubject]) + "…"
	}
	return "[Linktrial] " + text
}

func (e *email) write(to *strings.Builder, m *message, titled bool) {
	if titled {
		fmt.Fprintf(to, "%s\n", m.title)
	} else {
		fmt.Fprintf(to, "%s\n\n", m.title)
	}
	if m.text != "" {
		fmt.Fprintf(to, "%s\n", m.text)
	}
	fmt.Fprintf(to, "%s", unit.Moment(m.at))
	if e.pages != "" {
		fmt.Fprintf(to, "\n%s%s", e.pages, m.path)
	}
}
