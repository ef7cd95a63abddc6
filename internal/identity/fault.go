package identity

import (
	"errors"
	"fmt"
	"strings"
)

// TimeHeader carries, with a refusal, the time of the orchestrator's clock
// (RFC 9110, section 5.6.7).
const TimeHeader = "Orchestrator-Time"

// Explain puts the failure of a connection into a sentence that says what to
// do, where the cause is a matter of encryption; other errors are returned as
// they are. The original error stays wrapped.
func Explain(base string, err error) error {
	if err == nil {
		return nil
	}
	// These come from crypto/tls and net/http as text alone. The other way round,
	// the orchestrator says it itself.
	text := err.Error()
	if strings.HasPrefix(base, "https://") && (strings.Contains(text, "server gave HTTP response to HTTPS client") || strings.Contains(text, "first record does not look like a TLS handshake")) {
		return &explained{fmt.Sprintf("the orchestrator at %s speaks plain HTTP and was asked with TLS: its URL is http://%s, or it is to be started on an address beyond its machine, without --open", base, strings.TrimPrefix(base, "https://")), err}
	}
	return err
}

type explained struct {
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.cause }

// IsTransport says whether an error was put into words by [Explain].
func IsTransport(err error) bool {
	var e *explained
	return errors.As(err, &e)
}
