package notification

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Way is how a channel delivers.
type Way string

// The ways.
const (
	WayWebhook Way = "webhook"
	WayEmail   Way = "email"
)

// Security is how a connection to a mail server is protected.
type Security string

// The protections of a connection.
const (
	StartTLS Security = "starttls" // a server without it is refused
	TLS      Security = "tls"      // from the first byte
	Plain    Security = "none"     // not with a login
)

// Settings are where a channel sends to, as they are stored: those of its way.
type Settings struct {
	URL string `json:"url,omitempty"` // of a webhook

	Host     string   `json:"host,omitempty"` // of e-mail
	Port     int      `json:"port,omitempty"`
	Security Security `json:"security,omitempty"`
	User     string   `json:"user,omitempty"` // empty: without login
	From     string   `json:"from,omitempty"`
	To       []string `json:"to,omitempty"`
}

// Channel is by what people are told.
type Channel struct {
	Name      string
	Version   int // counts up with every change, from 1
	Off       bool
	Kinds     []string // empty: all
	Way       Way
	Settings  Settings
	HasSecret bool
	State     State
}

// State is how the deliveries of a channel went.
type State struct {
	DeliveredAt, FailedAt, NextTry time.Time // zero: never, or nothing waits
	Delivered, Waiting, GivenUp    int
	Error                          string // the last one; empty: the last delivery succeeded, or there was none
}

// Errors that callers branch on; they say in a sentence what is wrong and what to do.
var (
	ErrInvalid  = errors.New("is not valid")
	ErrNotFound = errors.New("there is no such channel")
	ErrChanged  = errors.New("was changed in between")
)

func invalid(format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...)}
}

// refusal is [ErrInvalid] with a text of its own.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return ErrInvalid }

// Bounds of a channel.
const (
	maxChannels = 20
	maxName     = 60   // characters
	maxURL      = 1000 // bytes
	maxHost     = 253
	maxTo       = 20
	maxAddress  = 254 // RFC 5321, 4.5.3.1.3
	maxUser     = 200
	maxSecret   = 4096
)

// check returns [ErrInvalid] with what is wrong with a channel that is to be saved.
func (c *Channel) check() error {
	switch n := utf8.RuneCountInString(c.Name); {
	case n == 0 || strings.TrimSpace(c.Name) != c.Name || !oneLine(c.Name):
		return invalid("name %q of a notification channel, expected a text in one line without blanks at its ends", c.Name)
	case n > maxName:
		return invalid("the name has %d characters, expected at most %d", n, maxName)
	}
	for _, k := range c.Kinds {
		if !isKind(k) {
			return invalid("there is no kind %q of notifications, expected one of %s", k, strings.Join(kindKeys(), ", "))
		}
	}
	slices.Sort(c.Kinds)
	c.Kinds = slices.Compact(c.Kinds)
	switch c.Way {
	case WayWebhook:
		return checkURL(c.Settings.URL)
	case WayEmail:
		return c.Settings.checkEmail()
	}
	return invalid("the channel has no settings, expected those of a webhook or of e-mail")
}

func kindKeys() (out []string) {
	for _, k := range kinds {
		out = append(out, k.Key)
	}
	return out
}

func oneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// checkURL does not repeat the URL: there may be a password in it.
func checkURL(text string) error {
	const expected = "expected http or https with a host, such as https://example.org/hook"
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return invalid("the webhook's URL has %d bytes, expected at most %d", len(text), maxURL)
	case err != nil || !oneLine(text):
		return invalid("the webhook's URL cannot be read, %s", expected)
	case u.User != nil:
		return invalid("the webhook's URL has a user or a password (the part before @), where others would read it: leave it out; the secret of the channel signs what is sent")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return invalid("the webhook's URL is not complete, %s", expected)
	case u.Fragment != "":
		return invalid("the webhook's URL has a fragment (the part after #), which no server gets: leave it out")
	}
	return nil
}

func (s *Settings) checkEmail() error {
	switch {
	case s.Host == "" || len(s.Host) > maxHost || strings.ContainsAny(s.Host, " /@?#") || !oneLine(s.Host):
		return invalid("host %q of the mail server, expected a name or an address such as mail.example.org", s.Host)
	case s.Port < 1 || s.Port > 65535:
		return invalid("port %d of the mail server, expected 1 to 65535 (587 with STARTTLS, 465 with TLS, 25 without)", s.Port)
	case s.Security != StartTLS && s.Security != TLS && s.Security != Plain:
		return invalid("the security of the connection is not given, expected STARTTLS, TLS or none")
	case len(s.User) > maxUser || !oneLine(s.User):
		return invalid("the user at the mail server: expected at most %d bytes in one line", maxUser)
	case s.User != "" && s.Security == Plain:
		return invalid("a login without TLS would send the password of %s openly: choose STARTTLS or TLS, or leave the user out", s.User)
	case len(s.To) == 0 || len(s.To) > maxTo:
		return invalid("%d recipients, expected 1 to %d", len(s.To), maxTo)
	}
	for _, a := range append([]string{s.From}, s.To...) {
		if err := checkAddress(a); err != nil {
			return err
		}
	}
	return nil
}

func checkAddress(a string) error {
	p, err := mail.ParseAddress(a)
	if err != nil || p.Address != a || len(a) > maxAddress || !oneLine(a) {
		return invalid("address %q, expected one such as ada@example.org, without a name", a)
	}
	return nil
}

// destination is what a secret was given for: with another one it is needed again.
func (c *Channel) destination() string {
	if c.Way == WayWebhook {
		return "webhook " + c.Settings.URL
	}
	return fmt.Sprintf("email %s:%d %s %s", strings.ToLower(c.Settings.Host), c.Settings.Port, c.Settings.Security, c.Settings.User)
}

// Place says where a channel sends to without what may be secret of it.
func (c *Channel) Place() string {
	if c.Way == WayWebhook {
		if u, err := url.Parse(c.Settings.URL); err == nil {
			return u.Scheme + "://" + u.Host
		}
		return "a URL that cannot be read"
	}
	return fmt.Sprintf("%s:%d", c.Settings.Host, c.Settings.Port)
}
