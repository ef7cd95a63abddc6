package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"linktrial/internal/identity"
	"linktrial/internal/unit"
)

// explain turns a failure into a text that a person at the node can act on. It
// may ask the orchestrator for its time, and so belongs where calls are allowed.
func (s *Session) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	code := connect.CodeOf(err)
	if te := (*identity.TimeError)(nil); errors.As(err, &te) && s.cfg.Identity != nil {
		return connect.NewError(code, s.cfg.Identity.ExplainTime(ctx, s.cfg.URL, te))
	}
	if x := identity.Explain(s.cfg.URL, err); identity.IsTransport(x) {
		return connect.NewError(code, x)
	}
	var ce *connect.Error
	if code == connect.CodeUnauthenticated && errors.As(err, &ce) && s.cfg.Identity != nil {
		if there, perr := http.ParseTime(ce.Meta().Get(identity.TimeHeader)); perr == nil {
			if words := identity.ClockWords(s.cfg.Identity.Now(), there); words != "" {
				return connect.NewError(code, errors.New(ce.Message()+"; "+words))
			}
		}
	}
	return err
}

// refusals are answers that no further try changes by itself.
var refusals = map[connect.Code]bool{
	connect.CodeUnauthenticated: true, connect.CodePermissionDenied: true, connect.CodeFailedPrecondition: true,
	connect.CodeInvalidArgument: true, connect.CodeAlreadyExists: true,
}

// logFailure logs a failure of the session once, and again when it is another
// one. It returns what was logged.
func (s *Session) logFailure(err error, logged string) string {
	kind, text := "unreachable", err.Error()
	var ce *connect.Error
	if errors.As(err, &ce) && refusals[ce.Code()] {
		kind, text = ce.Code().String()+" "+ce.Message(), ce.Message()
	} else if errors.As(err, &ce) && identity.IsTransport(err) {
		kind, text = ce.Message(), ce.Message()
	}
	switch {
	case kind == logged:
	case kind == "unreachable" || identity.IsTransport(err):
		s.status(fmt.Sprintf("no contact with %s since %s; the node continues without it", s.cfg.URL, unit.Moment(s.cfg.Clock.Now())))
		s.cfg.Logger.Warn("orchestrator cannot be reached; the node continues without it and retries", "url", s.cfg.URL, "error", text)
	default:
		s.status("the orchestrator refuses this node: " + text)
		s.cfg.Logger.Error("orchestrator refuses this node, which continues without it and retries", "url", s.cfg.URL, "reason", text)
	}
	return kind
}

// renewLimit bounds a renewal.
const renewLimit = 30 * time.Second

// Renew gets the node a new certificate, when calls are allowed, and connects
// anew with it.
func (s *Session) Renew(ctx context.Context) error {
	return s.do(ctx, renewLimit, func(ctx context.Context) error {
		s.renewing.Lock()
		defer s.renewing.Unlock()
		if err := s.cfg.Identity.Renew(ctx, &http.Client{Transport: s.http}, s.cfg.URL); err != nil {
			return err
		}
		// The next connection shows the new certificate. Calls that are cut by this
		// are made again, as after any cut.
		s.resumption.forget()
		s.reset()
		return nil
	})
}
