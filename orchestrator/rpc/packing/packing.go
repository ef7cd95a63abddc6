package packing

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/crypto/ssh"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/signature"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/rpc/shelf"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/store"
)

// DownloadPath is where bags are fetched from.
const DownloadPath = "/download/evidence"

// Keys has the orchestrator's keys; [linktrial/orchestrator/security/signing.Trust] is one.
type Keys interface {
	// Keys are the public keys that signed run sheets, oldest first; the last one signs.
	Keys() []signature.Endorsed
	// SignEvidence signs as ssh-keygen does, and returns the key that it was signed with.
	SignEvidence(content []byte) (armoured string, by signature.PublicKey, err error)
}

// Config is what bags are made from.
type Config struct {
	Store    *store.Store
	Journals Journals
	Results  shelf.Results
	Catalog  *catalog.Catalog
	Keys     Keys
	// Authority has the certificate of the authority of the nodes' certificates; nil: there is
	// none.
	Authority func() *x509.Certificate
	// Folder is where bags are made; what is in it is removed. Empty: none can be made.
	Folder  string
	Version string
	Logger  *slog.Logger
	// Stopping is closed when the orchestrator stops; nil: it does not.
	Stopping <-chan struct{}
	Now      func() time.Time // nil: time.Now
}

// Service is EvidenceService.
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
	s := &Service{cfg: cfg, shelf: shelf.New(cfg.Folder, "evidence", "pack it again")}
	if err := s.shelf.Clear(); err != nil {
		cfg.Logger.Warn("the folder for evidence cannot be used", "error", err)
	}
	return s
}

// Download answers GET [DownloadPath].
func (s *Service) Download(w http.ResponseWriter, r *http.Request) { s.shelf.Download(w, r) }

func (s *Service) Pack(ctx context.Context, req *connect.Request[linktrialv1.PackRequest], stream *connect.ServerStream[linktrialv1.PackResponse]) error {
	scope, err := s.cfg.Store.FindScope(ctx, req.Msg.CampaignId)
	switch {
	case err != nil:
		return reply.Error(ctx, s.cfg.Logger, "pack", err)
	case scope.Imported:
		return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("campaign %s was imported: its evidence is packed by the orchestrator that measured it", scope.Campaign))
	case scope.Run != "":
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s is a run: evidence is of whole campaigns; name its campaign, %s", scope.Run, scope.Campaign))
	}
	g, err := s.gathering(ctx, scope.Campaign)
	if err != nil {
		return err
	}
	var at string
	var out evidence.Written
	err = s.shelf.Work(ctx, shelf.Call{
		Progress: g.progress, Logger: s.cfg.Logger, Stopping: s.cfg.Stopping, Name: "pack",
		Busy: "evidence is being packed now, by somebody else or in another window: wait until that is done",
		Run: func(ctx context.Context) (err error) {
			at, out, err = g.run(ctx)
			return err
		},
		Tell: func(p shelf.State) error {
			return stream.Send(&linktrialv1.PackResponse{Doing: p.Doing, Done: p.Done, SecondsLeft: p.SecondsLeft})
		},
	})
	if err != nil {
		return err
	}
	e := &g.bundle.Evidence
	s.cfg.Logger.Info("evidence is packed", "campaign", e.Campaign, "bytes", out.Bytes, "missing", len(e.Missing), "by", e.PackedBy)
	return stream.Send(&linktrialv1.PackResponse{
		Doing: "done", Done: 1, Key: s.shelf.Keep(at, g.fileName()), FileName: g.fileName(), Bytes: out.Bytes,
		CampaignId: e.Campaign, Runs: int32(len(e.Runs)), Files: int32(out.Files), Journals: int32(g.journals), SignedJournals: int32(g.signed),
		Complete: e.Complete, Missing: e.Missing, Fingerprint: g.bundle.Fingerprint, SshFingerprint: ssh.FingerprintSHA256(g.bundle.Key),
	})
}

// gathering is the work for a campaign, signed by the key that signs now.
func (s *Service) gathering(ctx context.Context, campaign string) (*gathering, error) {
	keys := s.cfg.Keys.Keys()
	key := keys[len(keys)-1].Key
	asSSH, err := ssh.NewPublicKey(ed25519.PublicKey(key[:]))
	if err != nil {
		return nil, err
	}
	g := &gathering{cfg: &s.cfg, campaign: campaign, shelf: s.shelf, progress: shelf.NewProgress(s.cfg.Now), nodes: map[string][]store.RunNode{}}
	g.bundle = evidence.Bundle{
		Key: asSSH, Shown: key.String(), Fingerprint: key.Fingerprint(), Sheets: map[string]string{}, Times: map[string]evidence.Times{},
		Sign: func(content []byte) (string, error) {
			text, by, err := s.cfg.Keys.SignEvidence(content)
			if err == nil && by != key {
				err = connect.NewError(connect.CodeAborted, errors.New("the signing key was changed while this was packed: pack it again"))
			}
			return text, err
		},
	}
	if p, ok := access.From(ctx); ok {
		g.bundle.Evidence.PackedBy = p.User
	}
	return g, nil
}
