package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/lab"
	"linktrial/cmd/linktrial/setting"
	"linktrial/orchestrator/rpc"
	"linktrial/orchestrator/server"
)

func newServe(s *setting.Settings) *cobra.Command {
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
			log := s.Logger()
			cat, err := s.LoadCatalog()
			if err != nil {
				return err
			}
			cfg := s.ServerConfig(listen, database, cat, log)
			cfg.Open, cfg.TLS, cfg.TLSNames, cfg.TLSCert, cfg.TLSKey = secure.Open, secure.TLS, secure.TLSNames, secure.TLSCert, secure.TLSKey
			cfg.Login, cfg.Setup = login, setup
			if keepDays < 0 {
				return fmt.Errorf("--keep-samples-days %d, expected 0 (for ever) or more", keepDays)
			}
			cfg.KeepSamples = time.Duration(keepDays) * 24 * time.Hour
			cfg.Drivers = &servedDrivers{s: s}
			var offered *lab.Served
			cfg.Lab = func(addr string) (rpc.Lab, error) {
				var err error
				offered, err = lab.NewServed(cmd.Context(), s, cat, addr, log)
				return offered, err
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
			log.Info("orchestrator is ready", "url", srv.URL(), "version", s.Version)
			<-cmd.Context().Done()
			if offered != nil {
				offered.Close() // while its agents can still hand over what they have
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
