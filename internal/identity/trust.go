package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"linktrial/internal/unit"
)

// TimeError reports a certificate that is valid but for its time: by this
// machine's clock it has expired or is not valid yet. [ClockWords] compares this
// clock with the other side's.
type TimeError struct {
	What                string // "the orchestrator's certificate"
	Now                 time.Time
	NotBefore, NotAfter time.Time
}

func (e *TimeError) Error() string {
	if e.Now.Before(e.NotBefore) {
		return fmt.Sprintf("%s is valid from %s on, and this machine's clock says %s", e.What, unit.Moment(e.NotBefore), unit.Moment(e.Now))
	}
	return fmt.Sprintf("%s expired at %s, and this machine's clock says %s", e.What, unit.Moment(e.NotAfter), unit.Moment(e.Now))
}

// ErrOtherAuthority reports a server whose certificate is of another authority, or
// that shows none.
var ErrOtherAuthority = errors.New("not the orchestrator of the authority that is trusted here")

// VerifyOrchestrator checks, after a handshake, that the other side is the
// orchestrator of an authority. Errors are [ErrOtherAuthority] or a [TimeError].
func VerifyOrchestrator(cs tls.ConnectionState, authority *x509.Certificate, now time.Time) error {
	if len(cs.PeerCertificates) == 0 {
		return ErrOtherAuthority
	}
	leaf := cs.PeerCertificates[0]
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	opts := x509.VerifyOptions{DNSName: OrchestratorName, Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: now}
	if _, err := leaf.Verify(opts); err == nil {
		return nil
	}
	// A certificate that verifies in the middle of its validity has only the time wrong.
	opts.CurrentTime = leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
	if _, err := leaf.Verify(opts); err != nil {
		if f := Fingerprint(authority); len(cs.PeerCertificates) > 1 {
			theirs := Fingerprint(cs.PeerCertificates[len(cs.PeerCertificates)-1])
			return fmt.Errorf("%w: expected the authority with fingerprint %s, found %s", ErrOtherAuthority, FormatFingerprint(f), FormatFingerprint(theirs))
		}
		return fmt.Errorf("%w: %w", ErrOtherAuthority, err)
	}
	e := &TimeError{What: "the orchestrator's certificate", Now: now, NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}
	if !now.Before(leaf.NotBefore) && !now.After(leaf.NotAfter) {
		e.What, e.NotBefore, e.NotAfter = "the authority's certificate", authority.NotBefore, authority.NotAfter
	}
	return e
}

// clockTolerance is how far two clocks may differ before the difference is taken
// as the reason why a certificate is outside its validity.
const clockTolerance = 10 * time.Minute

// ClockWords describes how this machine's clock differs from the orchestrator's,
// and what to do; empty where they agree.
func ClockWords(here, there time.Time) string {
	d := here.Sub(there)
	word := "ahead of"
	if d < 0 {
		d, word = -d, "behind"
	}
	if d < clockTolerance {
		return ""
	}
	return fmt.Sprintf("this machine's clock says %s and the orchestrator's %s: it is %s %s it; set the one that is wrong (timedatectl, chronyc makestep), then try again",
		unit.Moment(here), unit.Moment(there), span(d), word)
}

func span(d time.Duration) string {
	if days := int(d.Hours() / 24); days >= 2 {
		return fmt.Sprintf("%d days", days)
	}
	if d >= 2*time.Hour {
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d minutes", int(d.Minutes()))
}
