package rpc

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/quota"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/launch"
	"linktrial/orchestrator/library"
	"linktrial/orchestrator/notification"
	"linktrial/orchestrator/rpc/day"
	"linktrial/orchestrator/rpc/enrol"
	"linktrial/orchestrator/rpc/measuring"
	"linktrial/orchestrator/rpc/notifying"
	"linktrial/orchestrator/rpc/packing"
	"linktrial/orchestrator/rpc/people"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/rpc/request"
	"linktrial/orchestrator/rpc/results"
	"linktrial/orchestrator/rpc/trust"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/authority"
	"linktrial/orchestrator/security/joining"
	"linktrial/orchestrator/security/signing"
	"linktrial/orchestrator/store"
)

// Config is what the services answer from.
type Config struct {
	Engine    *campaign.Engine
	Ingest    *ingest.Ingester
	Store     *store.Store
	Catalog   *catalog.Catalog
	Launcher  *launch.Launcher
	Library   *library.Library
	Fleet     *fleet.Fleet
	Trust     *signing.Trust
	Authority *authority.Authority
	Joining   *joining.Joining
	Access    *access.Access
	Notifier  *notification.Notifier
	Lab       Lab     // nil: none, and NoLab says why
	NoLab     string  // for people
	Drivers   Drivers // nil: none can be asked or checked here
	Version   string
	Logger    *slog.Logger
	// DatabaseLost returns since when the database does not answer, zero while it does;
	// nil: that is not known.
	DatabaseLost func() time.Time
	// DayFolder is where archives of days are made; empty: none can be made. Backup writes
	// a backup into a file, and returns the fingerprint of the key that signs it.
	DayFolder string
	Backup    func(ctx context.Context, out string) (fingerprint string, err error)
	// EvidenceFolder is where bags of evidence are made; empty: none can be made.
	EvidenceFolder string
	// Delivered hears of every delivery: how it ended ("stored", "refused", "over-bound" or
	// "failed") and how long it took. It can be nil.
	Delivered func(outcome string, took time.Duration)
	// OverBound hears of every call of a node that was refused because the node would take
	// more than it may. It can be nil.
	OverBound func(quota.Bound)
	// Options of every service's handler, such as what hears of the calls.
	Options []connect.HandlerOption
}

// compressFrom is the size from which answers are compressed, in bytes. Shorter
// ones, as agents get them all the time, gain nothing and cost memory and time.
const compressFrom = 1 << 10

// Mount adds all services to a mux.
func Mount(mux *http.ServeMux, cfg Config) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.DatabaseLost == nil {
		cfg.DatabaseLost = func() time.Time { return time.Time{} }
	}
	if cfg.Delivered == nil {
		cfg.Delivered = func(string, time.Duration) {}
	}
	if cfg.OverBound == nil {
		cfg.OverBound = func(quota.Bound) {}
	}
	values := results.New(results.Config{Store: cfg.Store, Catalog: cfg.Catalog, Logger: cfg.Logger, Stopping: cfg.Engine.Stopping()})
	opts := append([]connect.HandlerOption{connect.WithCompressMinBytes(compressFrom)}, cfg.Options...)
	// Innermost, so that what counts and logs calls gets the codes that callers get.
	opts = append(opts, connect.WithInterceptors(reply.Errors(cfg.Logger, cfg.DatabaseLost)), reply.Recover(cfg.Logger))
	opts = append(opts, request.Options()...)
	path, handler := linktrialv1connect.NewAgentServiceHandler(&agents{cfg: cfg}, append([]connect.HandlerOption{connect.WithInterceptors(cfg.Authority.Guard())}, opts...)...)
	mux.Handle(path, cfg.Authority.Nodes(handler)) // before a byte of the request is read
	operator := &operators{cfg, values}
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(operator, opts...))
	mux.Handle(linktrialv1connect.NewControlServiceHandler(&control{cfg}, opts...))
	mux.Handle(linktrialv1connect.NewResultServiceHandler(values, opts...))
	mux.Handle(linktrialv1connect.NewReportServiceHandler(values, opts...))
	mux.HandleFunc("GET "+results.DownloadPath, values.Download)
	mux.Handle(linktrialv1connect.NewMeasureServiceHandler(measuring.New(measuring.Config{Store: cfg.Store, Catalog: cfg.Catalog, Launcher: cfg.Launcher, Nodes: cfg.Engine.Nodes.List, Campaigns: values, Problems: asProblems, Logger: cfg.Logger}), opts...))
	ends := day.New(day.Config{Store: cfg.Store, Operator: operator, Results: values, Folder: cfg.DayFolder, Backup: cfg.Backup, Version: cfg.Version, Logger: cfg.Logger, Stopping: cfg.Engine.Stopping()})
	mux.Handle(linktrialv1connect.NewDayServiceHandler(ends, opts...))
	mux.HandleFunc("GET "+day.DownloadPath, ends.Download)
	packed := packing.New(packing.Config{Store: cfg.Store, Journals: cfg.Store, Results: values, Catalog: cfg.Catalog, Keys: cfg.Trust, Authority: cfg.Authority.Certificate, Folder: cfg.EvidenceFolder, Version: cfg.Version, Logger: cfg.Logger, Stopping: cfg.Engine.Stopping()})
	mux.Handle(linktrialv1connect.NewEvidenceServiceHandler(packed, opts...))
	mux.HandleFunc("GET "+packing.DownloadPath, packed.Download)
	mux.Handle(linktrialv1connect.NewLibraryServiceHandler(&plans{cfg}, opts...))
	mux.Handle(linktrialv1connect.NewFleetServiceHandler(&fleetCalls{cfg}, opts...))
	mux.Handle(linktrialv1connect.NewLabServiceHandler(&lab{cfg}, opts...))
	mux.Handle(linktrialv1connect.NewCatalogServiceHandler(&catalogs{cfg: cfg}, opts...))
	mux.Handle(linktrialv1connect.NewNotificationServiceHandler(notifying.New(cfg.Notifier, cfg.Logger, cfg.Engine.Stopping()), opts...))
	mux.Handle(linktrialv1connect.NewTrustServiceHandler(trust.New(cfg.Trust, cfg.Logger), opts...))
	mux.Handle(linktrialv1connect.NewAccessServiceHandler(people.New(cfg.Access, cfg.Logger), opts...))
	enrol.Mount(mux, enrol.Config{Authority: cfg.Authority, Joining: cfg.Joining, SigningKeys: cfg.Trust.Keys, Version: cfg.Version, Logger: cfg.Logger, DatabaseLost: cfg.DatabaseLost, OverBound: cfg.OverBound}, opts...)
}

func (c *Config) answer(ctx context.Context, call string, err error) error {
	return reply.Error(ctx, c.Logger, call, err)
}
