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
	"linktrial/orchestrator/rpc/auditing"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/rpc/shelf"
	"linktrial/orchestrator/store"
)

// DownloadPath is where archives are fetched from.
const DownloadPath = "/download/day"

// Results is what is asked of ResultService.
type Results interface {
	auditing.Results
	shelf.Results
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
	shelf *shelf.Shelf
}

// New is the service. It removes what an earlier process left in its folder.
func New(cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{cfg: cfg, shelf: shelf.New(cfg.Folder, "archive of a day", "close the day again")}
	if err := s.shelf.Clear(); err != nil {
		cfg.Logger.Warn("the folder for archives of days cannot be used", "error", err)
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
	c := &closing{cfg: s.cfg, span: sp, backup: backup, shelf: s.shelf, progress: shelf.NewProgress(s.cfg.Now)}
	var at string
	var bytes int64
	err = s.shelf.Work(ctx, shelf.Call{
		Progress: c.progress, Logger: s.cfg.Logger, Stopping: s.cfg.Stopping, Name: "close day",
		Busy: "a day is being closed now, by somebody else or in another window: wait until that is done",
		Run: func(ctx context.Context) (err error) {
			at, bytes, err = c.run(ctx)
			return err
		},
		Tell: func(p shelf.State) error {
			return send(&linktrialv1.DayProgress{Doing: p.Doing, Done: p.Done, SecondsLeft: p.SecondsLeft})
		},
	})
	if err != nil {
		return err
	}
	m := &linktrialv1.DayProgress{Doing: "done", Done: 1, Summary: c.summary, FileName: c.stem() + ".zip", Bytes: bytes}
	m.Key = s.shelf.Keep(at, m.FileName)
	return send(m)
}

// explain is an error as the summary has it: that of a part, whose caller gets the rest.
func (c *closing) explain(ctx context.Context, what string, err error) string {
	var coded *connect.Error
	if errors.As(reply.Told(ctx, c.cfg.Logger, what, err), &coded) {
		return coded.Message()
	}
	return fmt.Sprintf("%s failed", what)
}
