package reply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"linktrial/internal/unit"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/store"
)

// Error puts an error into the code that callers branch on. What is not the
// caller's fault is logged here, once, and the caller does not get its text.
func Error(ctx context.Context, log *slog.Logger, call string, err error) error {
	if err == nil {
		return nil
	}
	if coded := (*connect.Error)(nil); errors.As(err, &coded) && !ofDatabase(err) {
		return coded
	}
	if ended := access.Ended(ctx); ended != nil {
		return ended
	}
	if store.FaultOf(err) == store.NoFault {
		if code, ok := codeOf(err); ok {
			return connect.NewError(code, err)
		}
	}
	fault, text := store.Explain(log, call, err)
	code := connect.CodeInternal
	switch fault {
	case store.NoRows:
		code = connect.CodeNotFound
	case store.Unavailable:
		code = connect.CodeUnavailable
	case store.BadValue:
		code = connect.CodeInvalidArgument
	}
	return connect.NewError(code, errors.New(text))
}

// Told is [Error] for what runs on the orchestrator's machine beside it, such as a lab
// or a driver: what went wrong there is for people to read and to mend, so they get
// the text.
func Told(ctx context.Context, log *slog.Logger, call string, err error) error {
	coded := (*connect.Error)(nil)
	if err == nil || ctx.Err() != nil || errors.As(err, &coded) || ofDatabase(err) {
		return Error(ctx, log, call, err)
	}
	log.Error("call failed", "call", call, "error", err)
	return connect.NewError(connect.CodeInternal, err)
}

// NotFound is the error of a look-up: that what does not exist where the query
// had no rows, and any other error as it is.
func NotFound(what string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// ofDatabase reports whether an error wraps one of the database, whose text nobody
// outside may see.
func ofDatabase(err error) bool {
	var refused *pgconn.PgError
	var connecting *pgconn.ConnectError
	return errors.As(err, &refused) || errors.As(err, &connecting) || errors.Is(err, pgx.ErrNoRows)
}

func codeOf(err error) (connect.Code, bool) {
	var refused *ingest.RefusedError
	var conflict *ingest.ConflictError
	var bound *ingest.BoundError
	switch {
	case errors.As(err, &refused), errors.Is(err, nodes.ErrBadNode), errors.Is(err, campaign.ErrNoReason), errors.Is(err, campaign.ErrBadText):
		return connect.CodeInvalidArgument, true
	case errors.Is(err, store.ErrImported), errors.As(err, &conflict), errors.As(err, &bound), errors.Is(err, campaign.ErrNothingOpen), errors.Is(err, campaign.ErrRefused):
		return connect.CodeFailedPrecondition, true
	case errors.Is(err, ingest.ErrNotFound), errors.Is(err, nodes.ErrUnknownNode), errors.Is(err, campaign.ErrNoCampaign), errors.Is(err, campaign.ErrNoTrial),
		errors.Is(err, store.ErrNotFound):
		return connect.CodeNotFound, true
	case errors.Is(err, store.ErrAmbiguous):
		return connect.CodeInvalidArgument, true
	case errors.Is(err, nodes.ErrNameTaken), errors.Is(err, nodes.ErrOtherFolder):
		return connect.CodeAlreadyExists, true
	case errors.Is(err, nodes.ErrStopping):
		return connect.CodeUnavailable, true
	}
	return 0, false
}

// Since says since when something is down, in brackets; nothing where that is not known.
func Since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (since %s, %.0f s)", unit.Clock(t), time.Since(t).Seconds())
}

// Errors returns the interceptor that sees to it that every service answers with
// [Error], whatever its handlers return. Where the database does not answer, its callers
// are told since when; lost returns that, zero where the database answers.
func Errors(log *slog.Logger, lost func() time.Time) connect.Interceptor {
	return translator{log, lost}
}

type translator struct {
	log  *slog.Logger
	lost func() time.Time
}

func (t translator) error(ctx context.Context, call string, err error) error {
	err = Error(ctx, t.log, call, err)
	var coded *connect.Error
	if errors.As(err, &coded) && coded.Code() == connect.CodeUnavailable && coded.Message() == store.UnavailableText("") {
		return connect.NewError(connect.CodeUnavailable, errors.New(store.UnavailableText(Since(t.lost()))))
	}
	return err
}

func (t translator) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		if err != nil {
			return nil, t.error(ctx, req.Spec().Procedure, err)
		}
		return res, nil
	}
}

func (t translator) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (t translator) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return t.error(ctx, conn.Spec().Procedure, next(ctx, conn))
	}
}

// Recover returns the option that answers a handler's panic like any other
// internal error, with the stack in the log.
func Recover(log *slog.Logger) connect.HandlerOption {
	return connect.WithRecover(func(_ context.Context, spec connect.Spec, _ http.Header, p any) error {
		id, text := store.Incident()
		log.Error("call failed with a panic", "call", spec.Procedure, "incident", id, "panic", p, "stack", string(debug.Stack()))
		return connect.NewError(connect.CodeInternal, errors.New(text))
	})
}
