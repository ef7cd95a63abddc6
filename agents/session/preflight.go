package session

import (
	"context"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// ReportPreflight hands over what a preflight found. It tries until the
// orchestrator has answered, or ctx ends; a preflight that the orchestrator no
// longer waits for is no error.
func (s *Session) ReportPreflight(ctx context.Context, r *linktrialv1.ReportPreflightRequest) error {
	r.Name = s.cfg.Name
	retry := newBackoff()
	for {
		err := s.do(ctx, callLimit, func(ctx context.Context) error {
			_, err := s.client.ReportPreflight(ctx, connect.NewRequest(r))
			return err
		})
		switch {
		case err == nil, connect.CodeOf(err) == connect.CodeNotFound:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case connect.CodeOf(err) == connect.CodeInvalidArgument, connect.CodeOf(err) == connect.CodeUnimplemented:
			return err // the same report would be refused again
		}
		retry.Wait(ctx)
	}
}
