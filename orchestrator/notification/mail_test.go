package notification_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"mime"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/notification"
)

// post is a mail server, and what it got.
type post struct {
	port   int
	refuse func(before int) error // of a mail; nil: none is refused
	login  error                  // of every login with the right password; nil: it is let in

	mu     sync.Mutex
	mails  []letter
	logins int
	tries  int
}

type letter struct {
	from string
	to   []string
	raw  string
	tls  bool
}

func (p *post) got() []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]letter(nil), p.mails...)
}

// NewSession implements smtp.Backend.
func (p *post) NewSession(c *smtp.Conn) (smtp.Session, error) {
	_, secure := c.TLSConnectionState()
	return &session{p: p, l: letter{tls: secure}}, nil
}

type session struct {
	p *post
	l letter
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.p.mu.Lock()
		defer s.p.mu.Unlock()
		s.p.logins++
		if user != "ada" || password != secret {
			return errors.New("wrong user or password")
		}
		return s.p.login
	}), nil
}
func (s *session) Mail(from string, _ *smtp.MailOptions) error { s.l.from = from; return nil }
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error   { s.l.to = append(s.l.to, to); return nil }
func (s *session) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.tries++
	if s.p.refuse != nil {
		if err := s.p.refuse(s.p.tries - 1); err != nil {
			return err
		}
	}
	s.l.raw = string(b)
	s.p.mails = append(s.p.mails, s.l)
	return nil
}
func (s *session) Reset()        { s.l.from, s.l.to = "", nil }
func (s *session) Logout() error { return nil }

// certificate returns one for the loopback, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	x := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "post"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// servePost starts a mail server; without a certificate it offers no TLS.
func servePost(t *testing.T, p *post, security notification.Security, cert *tls.Certificate) *post {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.port = l.Addr().(*net.TCPAddr).Port
	s := smtp.NewServer(p)
	s.ErrorLog = log.New(io.Discard, "", 0)
	s.Domain, s.AllowInsecureAuth = "post.example", security == notification.Plain
	if cert != nil {
		cfg := &tls.Config{Certificates: []tls.Certificate{*cert}}
		if security == notification.TLS {
			l = tls.NewListener(l, cfg)
		} else {
			s.TLSConfig = cfg
		}
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return p
}

func mailTo(name string, port int, security notification.Security, user string) notification.Channel {
	return notification.Channel{Name: name, Way: notification.WayEmail, Settings: notification.Settings{Host: "127.0.0.1", Port: port, Security: security, User: user, From: "trial@example.org", To: []string{"ada@example.org", "bob@example.org"}}}
}

func TestEmail(t *testing.T) {
	cert, roots := certificate(t)
	for _, x := range []struct {
		security notification.Security
		user     string
	}{{notification.StartTLS, "ada"}, {notification.StartTLS, ""}, {notification.TLS, "ada"}, {notification.Plain, ""}} {
		t.Run(string(x.security)+" "+x.user, func(t *testing.T) {
			d := newDesk(t)
			d.roots = roots
			d.start()
			c := &cert
			if x.security == notification.Plain {
				c = nil
			}
			p := servePost(t, &post{}, x.security, c)
			password := ""
			if x.user != "" {
				password = secret
			}
			d.save(mailTo("mail", p.port, x.security, x.user), password)
			run := d.run("camp")
			d.end(run, "completed", "")
			d.told(2)
			eventually(t, "both are delivered", func() bool { return d.channel("mail").State.Delivered == 2 })
			l := p.got()[0]
			require.Equal(t, x.security != notification.Plain, l.tls)
			require.Equal(t, "trial@example.org", l.from)
			require.Equal(t, []string{"ada@example.org", "bob@example.org"}, l.to)
			m, err := mail.ReadMessage(strings.NewReader(l.raw))
			require.NoError(t, err)
			subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
			require.NoError(t, err)
			require.Equal(t, "[Linktrial] test: run "+run+" (perfect, bench) has completed", subject)
			require.Equal(t, "auto-generated", m.Header.Get("Auto-Submitted"))
			require.Regexp(t, `^<[0-9a-f]{16}-\d+@example\.org>$`, m.Header.Get("Message-ID"))
			require.Contains(t, m.Header.Get("Content-Type"), "text/plain")
			body, err := io.ReadAll(m.Body)
			require.NoError(t, err)
			require.Contains(t, strings.ReplaceAll(string(body), "=\r\n", ""), "http://pages.example/runs/camp")
			require.NotContains(t, d.log.String()+l.raw, secret)
			require.Equal(t, x.user != "", p.logins > 0)
		})
	}
}

// What goes wrong is shown in words that have no secret.
func TestEmailFails(t *testing.T) {
	cert, roots := certificate(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	echo := &smtp.SMTPError{Code: 535, Message: "no: " + secret + " and " + base64.StdEncoding.EncodeToString([]byte("\x00ada\x00"+secret)) + "\x1b[31m"}
	for name, x := range map[string]struct {
		post     *post
		security notification.Security
		served   notification.Security
		cert     *tls.Certificate
		foreign  bool
		password string
		port     int
		want     string
	}{
		"no STARTTLS":                  {&post{}, notification.StartTLS, notification.Plain, nil, false, secret, 0, "STARTTLS"},
		"foreign certificate":          {&post{}, notification.StartTLS, notification.StartTLS, &cert, true, secret, 0, "certificate signed by unknown authority"},
		"foreign, from the first byte": {&post{}, notification.TLS, notification.TLS, &cert, true, secret, 0, "certificate signed by unknown authority"},
		"wrong password":               {&post{}, notification.StartTLS, notification.StartTLS, &cert, false, "wrong-password", 0, "wrong user or password"},
		"echo":                         {&post{login: echo}, notification.StartTLS, notification.StartTLS, &cert, false, secret, 0, "no: [secret] and [secret]"},
		"hangs":                        {nil, notification.StartTLS, "", nil, false, secret, silent.Addr().(*net.TCPAddr).Port, "did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.limits.Try = time.Second
			if d.roots = roots; x.foreign {
				d.roots = x509.NewCertPool()
			}
			d.start()
			port := x.port
			if x.post != nil {
				port = servePost(t, x.post, x.served, x.cert).port
			}
			d.save(mailTo("mail", port, x.security, "ada"), x.password)
			began := time.Now()
			failure, err := d.n.Test(t.Context(), "mail")
			require.NoError(t, err)
			require.Contains(t, failure, x.want)
			require.Less(t, time.Since(began), 5*time.Second)
			d.end(d.run("camp"), "completed", "")
			eventually(t, "the error is shown", func() bool { return strings.Contains(d.channel("mail").State.Error, x.want) })
			for _, text := range []string{secret, x.password, base64.StdEncoding.EncodeToString([]byte(secret)), "\x1b"} {
				require.NotContains(t, d.log.String()+failure+d.channel("mail").State.Error, text)
			}
			if x.post != nil {
				require.Empty(t, x.post.got())
			}
		})
	}
}

// A mail that is put off comes later, as the same one.
func TestEmailAgain(t *testing.T) {
	d := newDesk(t).start()
	p := servePost(t, &post{refuse: func(before int) error {
		if before < 3 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "come back later"}
		}
		return nil
	}}, notification.Plain, nil)
	d.save(mailTo("mail", p.port, notification.Plain, ""), "")
	d.end(d.run("camp"), "completed", "")
	eventually(t, "the error is shown", func() bool { return strings.Contains(d.channel("mail").State.Error, "come back later") })
	eventually(t, "both are delivered", func() bool { return d.channel("mail").State.Delivered == 2 })
	require.Len(t, p.got(), 2)
	require.Empty(t, d.channel("mail").State.Error)
}

// Many that wait become one mail.
func TestDigest(t *testing.T) {
	d := newDesk(t)
	d.limits.First, d.limits.Last = time.Second, time.Second
	d.start()
	var mu sync.Mutex
	down := true
	p := servePost(t, &post{refuse: func(int) error {
		mu.Lock()
		defer mu.Unlock()
		if down {
			return &smtp.SMTPError{Code: 451, Message: "later"}
		}
		return nil
	}}, notification.Plain, nil)
	d.save(mailTo("mail", p.port, notification.Plain, ""), "")
	for i := range 15 {
		d.end(d.run(fmt.Sprintf("camp%d", i)), "completed", "")
	}
	d.told(30)
	mu.Lock()
	down = false
	mu.Unlock()
	eventually(t, "all are delivered", func() bool { return d.channel("mail").State.Delivered == 30 })
	got := p.got()
	require.LessOrEqual(t, len(got), 2, "one digest, and perhaps one of before it")
	last := strings.ReplaceAll(got[len(got)-1].raw, "=\r\n", "")
	require.Contains(t, last, "notifications, the last:")
	require.Equal(t, 15, strings.Count(last, "the campaign has ended\r\n"))
}

// Of a mail that tells of many and fails, only those that are old are given up.
func TestDigestGivenUp(t *testing.T) {
	d := newDesk(t)
	d.limits.First, d.limits.Last, d.limits.GiveUp = 200*time.Millisecond, 200*time.Millisecond, 10*time.Minute
	d.start()
	p := servePost(t, &post{refuse: func(int) error { return &smtp.SMTPError{Code: 451, Message: "later"} }}, notification.Plain, nil)
	d.save(mailTo("mail", p.port, notification.Plain, ""), "")
	for i := range 12 {
		d.end(d.run(fmt.Sprintf("camp%d", i)), "completed", "")
	}
	d.told(24)
	d.sql("UPDATE notification_deliveries SET created_at = created_at - interval '1 hour' WHERE notification_id <= (SELECT min(id) + 2 FROM notifications)")
	eventually(t, "three are given up", func() bool { return d.channel("mail").State.GivenUp == 3 })
	time.Sleep(500 * time.Millisecond)
	require.Equal(t, []int{3, 21}, []int{d.channel("mail").State.GivenUp, d.channel("mail").State.Waiting})
}

// What people named a plan cannot begin another header, nor a line of SMTP.
func TestNoHeaderIsInjected(t *testing.T) {
	d := newDesk(t).start()
	p := servePost(t, &post{}, notification.Plain, nil)
	d.save(mailTo("mail", p.port, notification.Plain, ""), "")
	run := d.run("camp")
	d.sql("UPDATE campaigns SET name = $1", "x\r\nBcc: eve@example.org\r\n\r\n.\r\nRCPT TO:<eve@example.org>\r\n\u2028Böse")
	d.end(run, "stopped", "a\r\n.\r\nMAIL FROM:<eve@example.org>\r\nb")
	eventually(t, "both are delivered", func() bool { return d.channel("mail").State.Delivered == 2 })
	require.Len(t, p.got(), 2)
	for _, l := range p.got() {
		m, err := mail.ReadMessage(strings.NewReader(l.raw))
		require.NoError(t, err)
		require.Empty(t, m.Header.Get("Bcc"))
		require.Equal(t, []string{"ada@example.org", "bob@example.org"}, l.to)
		subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		require.NoError(t, err)
		require.Contains(t, subject, "[Linktrial] x Bcc: eve@example.org . RCPT TO:<eve@example.org> Böse")
	}
	require.NotContains(t, d.titles()[0], "\n")
}
