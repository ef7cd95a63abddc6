package identity

import (
	"errors"
	"fmt"
	"strings"
)

// TimeHeader carries, with a refusal, the time of the orchestrator's clock
// (RFC 9110, section 5.6.7).
const TimeHeader = "Orchestrator-Time"

// Explain replaces the error of a connection, where one side speaks TLS and the
// other does not, by a sentence that says what to do. It returns other errors as
// they are. The original error stays wrapped.
func Explain(base string, err error) error {
	if err == nil {
		return nil
	}
	// crypto/tls and net/http give no type for these errors, only text. In the
	// opposite case the orchestrator itself answers with the explanation.
	text := err.Error()
	if strings.HasPrefix(base, "https://") && (strings.Contains(text, "server gave HTTP response to HTTPS client") || strings.Contains(text, "first record does not look like a TLS handshake")) {
		return &explained{fmt.Sprintf("the orchestrator at %s speaks plain HTTP and was asked with TLS: its URL is http://%s, or start it on an address that other machines reach, without --open", base, strings.TrimPrefix(base, "https://")), err}
	}
	return err
}

type explained struct {
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.cause }

// IsTransport reports whether an error was explained by [Explain].
func IsTransport(err error) bool {
	var e *explained
	return errors.As(err, &e)
}
