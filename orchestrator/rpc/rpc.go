package rpc

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"

	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/library"
	"linktrial/orchestrator/store"
)

// Config is what the services answer from.
type Config struct {
	Engine  *campaign.Engine
	Ingest  *ingest.Ingester
	Store   *store.Store
	Catalog *catalog.Catalog
	Library *library.Library
	Fleet   *fleet.Fleet
	Lab     Lab     // nil: none, and NoLab says why
	NoLab   string  // for people
	Drivers Drivers // nil: none can be asked or checked here
	Version string
	Logger  *slog.Logger
	// Delivered hears of every delivery: how it ended ("stored", "refused" or
	// "failed") and how long it took. It can be nil.
	Delivered func(outcome string, took time.Duration)
	// Options of every service's handler, such as what hears of the calls.
	Options []connect.HandlerOption
}

// maxRequest bounds a request. Agents deliver in batches of a mebibyte; a
// single record may have ingest.MaxRecordBytes.
const maxRequest = ingest.MaxRecordBytes + 1<<20

// Mount adds all services to a mux.
func Mount(mux *http.ServeMux, cfg Config) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Delivered == nil {
		cfg.Delivered = func(string, time.Duration) {}
	}
	opts := append([]connect.HandlerOption{connect.WithReadMaxBytes(maxRequest)}, cfg.Options...)
	mux.Handle(linktrialv1connect.NewAgentServiceHandler(&agents{cfg: cfg}, opts...))
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(&operators{cfg}, opts...))
	mux.Handle(linktrialv1connect.NewControlServiceHandler(&control{cfg}, opts...))
	mux.Handle(linktrialv1connect.NewResultServiceHandler(&results{cfg}, opts...))
	mux.Handle(linktrialv1connect.NewLibraryServiceHandler(&plans{cfg}, opts...))
	mux.Handle(linktrialv1connect.NewFleetServiceHandler(&nodes{cfg}, opts...))
	mux.Handle(linktrialv1connect.NewLabServiceHandler(&lab{cfg}, opts...))
	mux.Handle(linktrialv1connect.NewCatalogServiceHandler(&catalogs{cfg: cfg}, opts...))
}

// answer puts an error into the code that callers branch on. What is nobody's
// fault but ours is logged here, once.
func (c *Config) answer(ctx context.Context, call string, err error) error {
	if err == nil {
		return nil
	}
	if coded := (*connect.Error)(nil); errors.As(err, &coded) {
		return coded
	}
	if code, ok := codeOf(ctx, err); ok {
		return connect.NewError(code, err)
	}
	c.Logger.Error("call failed", "call", call, "error", err)
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
	case errors.As(err, &refused), errors.Is(err, campaign.ErrBadNode), errors.Is(err, campaign.ErrNoReason), errors.Is(err, campaign.ErrBadText), errors.Is(err, errNoRun):
		return connect.CodeInvalidArgument, true
	case errors.As(err, &conflict), errors.Is(err, campaign.ErrNothingOpen), errors.Is(err, campaign.ErrRefused):
		return connect.CodeFailedPrecondition, true
	case errors.Is(err, ingest.ErrNotFound), errors.Is(err, campaign.ErrUnknownNode), errors.Is(err, campaign.ErrNoCampaign), errors.Is(err, campaign.ErrNoTrial),
		errors.Is(err, store.ErrNotFound), errors.Is(err, pgx.ErrNoRows):
		return connect.CodeNotFound, true
	case errors.Is(err, store.ErrAmbiguous):
		return connect.CodeInvalidArgument, true
	case errors.Is(err, campaign.ErrNameTaken):
		return connect.CodeAlreadyExists, true
	case errors.Is(err, campaign.ErrStopping):
		return connect.CodeUnavailable, true
	}
	return 0, false
}
