package notification

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxError bounds the text of an error, in characters.
const maxError = 400

const hiddenSecret = "[secret]"

// shown returns what may be stored and shown of an error of a delivery: one line, in which the
// channel's secret and its URL do not occur, also where a server repeats them.
func shown(err error, c *Channel, secret string) string {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err // without the URL, whose path can be a secret
	}
	text := err.Error()
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		text = "no answer in time (" + text + ")"
	}
	for _, s := range forms(c, secret) {
		text = strings.ReplaceAll(text, s, hiddenSecret)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxError {
		text = string(r[:maxError]) + "…"
	}
	return text
}

// forms are the texts as which a secret goes over the wire, the longest first.
func forms(c *Channel, secret string) []string {
	var out []string
	if secret != "" {
		b := []byte(secret)
		login := []byte("\x00" + c.Settings.User + "\x00" + secret)
		out = append(out, base64.StdEncoding.EncodeToString(login), hex.EncodeToString(b), url.QueryEscape(secret), url.PathEscape(secret),
			base64.StdEncoding.EncodeToString(b), base64.RawStdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b), secret)
	}
	if c.Way == WayWebhook {
		if u, err := url.Parse(c.Settings.URL); err == nil {
			out = append(out, c.Settings.URL)
			for _, part := range []string{u.RequestURI(), u.RawQuery, u.EscapedPath(), strings.TrimPrefix(u.EscapedPath(), "/")} {
				if len(part) > 1 {
					out = append(out, part)
				}
			}
		}
	}
	return out
}
