package reply

import (
	"context"
	"errors"
	"log/slog"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"

	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
)

// Error puts an error into the code that callers branch on. What is nobody's
// fault but ours is logged here, once.
func Error(ctx context.Context, log *slog.Logger, call string, err error) error {
	if err == nil {
		return nil
	}
	if coded := (*connect.Error)(nil); errors.As(err, &coded) {
		return coded
	}
	if code, ok := codeOf(ctx, err); ok {
		return connect.NewError(code, err)
	}
	log.Error("call failed", "call", call, "error", err)
	return connect.NewError(connect.CodeInternal, err)
}

func codeOf(ctx context.Context, err error) (connect.Code, bool) {
	var refused *ingest.RefusedError
	var conflict *ingest.ConflictError
	switch {
	case ctx.Err() != nil:
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return connect.CodeDeadlineExceeded, true
		}
		return connect.CodeCanceled, true
	case errors.As(err, &refused), errors.Is(err, nodes.ErrBadNode), errors.Is(err, campaign.ErrNoReason), errors.Is(err, campaign.ErrBadText):
		return connect.CodeInvalidArgument, true
	case errors.As(err, &conflict), errors.Is(err, campaign.ErrNothingOpen), errors.Is(err, campaign.ErrRefused):
		return connect.CodeFailedPrecondition, true
	case errors.Is(err, ingest.ErrNotFound), errors.Is(err, nodes.ErrUnknownNode), errors.Is(err, campaign.ErrNoCampaign), errors.Is(err, campaign.ErrNoTrial),
		errors.Is(err, store.ErrNotFound), errors.Is(err, pgx.ErrNoRows):
		return connect.CodeNotFound, true
	case errors.Is(err, store.ErrAmbiguous):
		return connect.CodeInvalidArgument, true
	case errors.Is(err, nodes.ErrNameTaken):
		return connect.CodeAlreadyExists, true
	case errors.Is(err, nodes.ErrStopping):
		return connect.CodeUnavailable, true
	}
	return 0, false
}
