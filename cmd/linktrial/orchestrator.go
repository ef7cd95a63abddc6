package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/rpc"
	"linktrial/orchestrator/server"
	"linktrial/plans"
)

func loadCatalog(s *settings) (*catalog.Catalog, error) {
	return catalog.Load(catalog.Config{DriversDir: s.drivers, SavedDir: filepath.Join(s.data, "topologies")})
}

func (s *settings) serverConfig(listen, database string, cat *catalog.Catalog, log *slog.Logger) server.Config {
	return server.Config{Listen: listen, DatabaseURL: database, DataDir: s.data, Catalog: cat, Plans: plans.Files, Version: buildVersion(), Logger: log}
}

func newServe(s *settings) *cobra.Command {
	var listen, database string
	var login, setup bool
	var tokensFor []string
	var tokensTo string
	var keepDays int
	var secure server.Config // what the flags say of encryption
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the orchestrator, with a private PostgreSQL unless --database names one",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := s.logger()
			cat, err := loadCatalog(s)
			if err != nil {
				return err
			}
			cfg := s.serverConfig(listen, database, cat, log)
			cfg.Open, cfg.TLS, cfg.TLSNames, cfg.TLSCert, cfg.TLSKey = secure.Open, secure.TLS, secure.TLSNames, secure.TLSCert, secure.TLSKey
			cfg.Login, cfg.Setup = login, setup
			if keepDays < 0 {
				return fmt.Errorf("--keep-samples-days %d, expected 0 (for ever) or more", keepDays)
			}
			cfg.KeepSamples = time.Duration(keepDays) * 24 * time.Hour
			cfg.Drivers = &servedDrivers{s: s}
			var lab *servedLab
			cfg.Lab = func(addr string) (rpc.Lab, error) {
				var err error
				lab, err = newServedLab(cmd.Context(), s, cat, addr, log)
				return lab, err
			}
			srv, err := server.Start(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if len(tokensFor) > 0 {
				err = srv.Authority().Issue(cmd.Context(), tokensFor, tokensTo)
			}
			if err != nil {
				stop, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), 20*time.Second)
				defer cancel()
				return errors.Join(err, srv.Stop(stop))
			}
			log.Info("orchestrator is ready", "url", srv.URL(), "version", buildVersion())
			<-cmd.Context().Done()
			if lab != nil {
				lab.close() // while its agents can still hand over what they have
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			return srv.Stop(ctx)
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:7700", "address and port")
	f.StringVar(&database, "database", "", "PostgreSQL URL (default: a private PostgreSQL in the data folder)")
	f.IntVar(&keepDays, "keep-samples-days", 0, "after so many days the samples of runs that have ended are dropped, their figures are kept (0: never)")
	f.BoolVar(&secure.Open, "open", false, "listen beyond this machine without encryption and without asking who calls: for a closed bench only")
	f.BoolVar(&secure.TLS, "tls", false, "speak TLS and work with enrolled nodes on the loopback too")
	f.StringSliceVar(&secure.TLSNames, "tls-name", nil, "a further name or address that the orchestrator is called by, for its certificate")
	f.StringVar(&secure.TLSCert, "tls-cert", "", "a certificate of your own for people's programs, in PEM (default: one of the orchestrator's authority)")
	f.StringVar(&secure.TLSKey, "tls-key", "", "its key")
	f.StringSliceVar(&tokensFor, "issue-tokens", nil, "names of nodes to write a one-time token for, where they have none and no certificate")
	f.StringVar(&tokensTo, "issue-tokens-to", "", "folder for those tokens, as NAME.token")
	f.BoolVar(&secure.Open, "insecure", false, "")
	if err := f.MarkDeprecated("insecure", "it is called --open now"); err != nil {
		panic(err) // there is no such flag
	}
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	cmd.MarkFlagsRequiredTogether("issue-tokens", "issue-tokens-to")
	cmd.MarkFlagsMutuallyExclusive("open", "tls")
	f.BoolVar(&login, "login", false, "have people log in on the loopback too")
	f.BoolVar(&setup, "setup-token", false, "make a token in the data folder for another admin, where the admin's password is lost")
	return cmd
}

// orchestratorView is a connection for reading results: to the orchestrator
// that runs, or to one started on the data folder just for the question.
type orchestratorView struct {
	base   string
	client linktrialv1connect.OperatorServiceClient
	close  func()
}

// openOrchestrator uses the orchestrator at --orchestrator; where none answers
// and the user named none, it starts one on the data folder for as long as the
// command lasts, so that results can be read after a rehearsal has ended.
func openOrchestrator(ctx context.Context, s *settings, named bool) (*orchestratorView, error) {
	up, err := reachable(ctx, s.orchestrator)
	if err != nil {
		return nil, rpcError(s.orchestrator, err)
	}
	if up || named || os.Getenv("LINKTRIAL_ORCHESTRATOR") != "" {
		return &orchestratorView{base: s.orchestrator, client: newClient(s.orchestrator), close: func() {}}, nil
	}
	if _, err := os.Stat(s.data); err != nil {
		return nil, fmt.Errorf("no orchestrator answers at %s, and there is nothing in %s yet: start with 'linktrial rehearse plans/quickstart.yaml' or 'linktrial serve'", s.orchestrator, s.data)
	}
	cat, err := loadCatalog(s)
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	srv, err := server.Start(ctx, s.serverConfig("127.0.0.1:0", "", cat, quiet))
	if err != nil {
		return nil, err
	}
	base := "http://" + srv.Addr()
	return &orchestratorView{base: base, client: newClient(base), close: func() {
		stop, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := srv.Stop(stop); err != nil {
			quiet.Error("stop the orchestrator", "error", err)
		}
	}}, nil
}

// printResults writes the results of a run or campaign in one format.
func printResults(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, id, format string, w io.Writer) error {
	res, err := c.Results(ctx, connect.NewRequest(&linktrialv1.ResultsRequest{RunId: id, Format: format}))
	if err != nil {
		return rpcError(base, err)
	}
	_, err = w.Write(res.Msg.Content)
	return err
}
