package day

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/rpc/auditing"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/store"
)

// DownloadPath is where archives are fetched from.
const DownloadPath = "/download/day"

// tellEvery is how often a caller hears how much is done.
const tellEvery = time.Second

// Results is what is asked of ResultService.
type Results interface {
	auditing.Results
	ListFormats(context.Context, *connect.Request[linktrialv1.ListFormatsRequest]) (*connect.Response[linktrialv1.ListFormatsResponse], error)
	Export(ctx context.Context, m *linktrialv1.ResultsRequest, send func(*linktrialv1.ResultsResponse) error) error
}

// Config is what a day is closed with.
type Config struct {
	Store    *store.Store
	Operator auditing.Operator
	Results  Results
	// Folder is where archives are made; what is in it is removed. Empty: none can be made.
	Folder string
	// Backup writes a backup into a file, and returns the fingerprint of the key that signs it.
	Backup  func(ctx context.Context, out string) (fingerprint string, err error)
	Version string
	Logger  *slog.Logger
	// Stopping is closed when the orchestrator stops; nil: it does not.
	Stopping <-chan struct{}
	Now      func() time.Time // nil: time.Now
}

// Service is DayService.
type Service struct {
	cfg   Config
	shelf *shelf
	busy  chan struct{} // has one while a day is closed
}

// New is the service. It removes what an earlier process left in its folder.
func New(cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{cfg: cfg, shelf: &shelf{folder: cfg.Folder}, busy: make(chan struct{}, 1)}
	if cfg.Folder != "" {
		if err := s.shelf.clear(); err != nil {
			cfg.Logger.Warn("the folder for archives of days cannot be used", "error", err)
		}
	}
	return s
}

// Download answers GET [DownloadPath].
func (s *Service) Download(w http.ResponseWriter, r *http.Request) { s.shelf.Download(w, r) }

func (s *Service) CloseDay(ctx context.Context, req *connect.Request[linktrialv1.CloseDayRequest], stream *connect.ServerStream[linktrialv1.CloseDayResponse]) error {
	return s.close(ctx, req.Msg.Date, req.Msg.Zone, false, func(p *linktrialv1.DayProgress) error {
		return stream.Send(&linktrialv1.CloseDayResponse{Progress: p})
	})
}

func (s *Service) CloseDayWithBackup(ctx context.Context, req *connect.Request[linktrialv1.CloseDayWithBackupRequest], stream *connect.ServerStream[linktrialv1.CloseDayWithBackupResponse]) error {
	return s.close(ctx, req.Msg.Date, req.Msg.Zone, true, func(p *linktrialv1.DayProgress) error {
		return stream.Send(&linktrialv1.CloseDayWithBackupResponse{Progress: p})
	})
}

// close does the work, and tells of it until that has ended. It ends with the caller's
// context, and when the orchestrator stops.
func (s *Service) close(ctx context.Context, date, zone string, backup bool, send func(*linktrialv1.DayProgress) error) error {
	sp, err := spanOf(date, zone, s.cfg.Now())
	if err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	if s.cfg.Folder == "" {
		return connect.NewError(connect.CodeFailedPrecondition, errors.New("this orchestrator has no data folder, in which the archive of a day is made"))
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	default:
		return connect.NewError(connect.CodeFailedPrecondition, errors.New("a day is being closed now, by somebody else or in another window: wait until that is done"))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &closing{cfg: s.cfg, span: sp, backup: backup, shelf: s.shelf, progress: newProgress(s.cfg.Now)}
	var at string
	var bytes int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		at, bytes, err = c.run(ctx)
	}()
	if stopped := s.follow(ended, c.progress, send); stopped != nil {
		cancel()
		<-ended
		s.drop()
		return stopped
	}
	if err != nil {
		s.drop()
		return reply.Told(ctx, s.cfg.Logger, "close day", err)
	}
	m := &linktrialv1.DayProgress{Doing: "done", Done: 1, Summary: c.summary, FileName: c.stem() + ".zip", Bytes: bytes}
	m.Key = s.shelf.keep(at, m.FileName)
	return send(m)
}

// follow tells of the progress until the work has ended. The error is why it should end.
func (s *Service) follow(ended <-chan struct{}, p *progress, send func(*linktrialv1.DayProgress) error) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-s.cfg.Stopping:
			return nodes.ErrStopping
		case <-tick.C:
			if err := send(p.message()); err != nil {
				return err
			}
		}
	}
}

// drop removes what was made of an archive that is not finished.
func (s *Service) drop() {
	if err := s.shelf.clear(); err != nil {
		s.cfg.Logger.Warn("the unfinished archive of a day could not be removed", "error", err)
	}
}

// explain is an error as the summary has it: that of a part, whose caller gets the rest.
func (c *closing) explain(ctx context.Context, what string, err error) string {
	var coded *connect.Error
	if errors.As(reply.Told(ctx, c.cfg.Logger, what, err), &coded) {
		return coded.Message()
	}
	return fmt.Sprintf("%s failed", what)
}
