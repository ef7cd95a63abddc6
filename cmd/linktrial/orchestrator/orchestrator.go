package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/lab"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/watchdog"
	"linktrial/lab/faults"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/rpc"
	"linktrial/orchestrator/security/authority"
	"linktrial/orchestrator/server"
)

func newServe(s *setting.Settings) *cobra.Command {
	f := &serveFlags{s: s}
	cmd := &cobra.Command{
		Use:     "serve",
		GroupID: setting.GroupService,
		Short:   "Run the orchestrator, with a private PostgreSQL unless --database names one",
		Long: `Serve runs the orchestrator and its pages until a signal ends it. On the loopback it
speaks HTTP and has no login. On any other address it speaks TLS, works with enrolled
nodes, and requires people to log in (docs/security.md).`,
		Example: `  linktrial serve
  linktrial serve --listen 0.0.0.0:7700
  linktrial serve --listen 0.0.0.0:7700 --database postgres://linktrial@db/linktrial`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd.Context()) },
	}
	f.register(cmd)
	return cmd
}

// serveFlags are the flags of 'linktrial serve'.
type serveFlags struct {
	s                *setting.Settings
	listen, database string
	login, setup     bool
	secondFactor     []string // roles
	openID           server.OpenID
	tokensFor        []string // names of nodes
	tokensTo         string   // folder
	keepDays         int
	radios           []string      // interfaces on which laptops that join do not find it
	tls              server.Config // only its fields for TLS, Open and AllowHosts
}

func (f *serveFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.listen, "listen", "127.0.0.1:7700", "address and port")
	fs.StringVar(&f.database, "database", "", "PostgreSQL URL (or LINKTRIAL_DATABASE, which the list of processes does not show; default: a private PostgreSQL in the data folder)")
	fs.IntVar(&f.keepDays, "keep-samples-days", 0, "delete the samples of ended runs after this many days, and keep their results (0: never)")
	fs.BoolVar(&f.tls.Open, "open", false, "listen beyond this machine without encryption and without login: for a closed test bench only")
	fs.BoolVar(&f.tls.TLS, "tls", false, "speak TLS and work with enrolled nodes on the loopback, too")
	fs.StringSliceVar(&f.tls.TLSNames, "tls-name", nil, "a further name or address of the orchestrator, for its certificate")
	fs.StringVar(&f.tls.TLSCert, "tls-cert", "", "a certificate of your own for people's programs, in PEM (default: one of the orchestrator's authority)")
	fs.StringVar(&f.tls.TLSKey, "tls-key", "", "the key of --tls-cert")
	fs.StringSliceVar(&f.tls.AllowHosts, "allow-host", nil, "a name under which people or nodes reach the orchestrator, beyond the one of --listen and those of its certificate; can be given several times, and adds to LINKTRIAL_ALLOW_HOST")
	fs.StringSliceVar(&f.radios, "radio-interface", nil, "interface of a radio, such as wlan0: laptops that join by a code do not find the orchestrator there, so that nothing is sent on it; can be given several times")
	fs.StringSliceVar(&f.tokensFor, "issue-tokens", nil, "names of nodes to make a one-time token for, where they have neither token nor certificate")
	fs.StringVar(&f.tokensTo, "issue-tokens-to", "", "folder for those tokens, as NAME.token; "+authority.NodePlaceholder+" in it is replaced by NAME, which gives each node a folder")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	cmd.MarkFlagsRequiredTogether("issue-tokens", "issue-tokens-to")
	cmd.MarkFlagsMutuallyExclusive("open", "tls")
	fs.BoolVar(&f.login, "login", false, "require people to log in on the loopback, too")
	fs.StringSliceVar(&f.secondFactor, "second-factor", nil, "roles for which local accounts need a second factor at the login, such as admin,director")
	fs.StringVar(&f.openID.Issuer, "oidc-issuer", "", "URL of an OpenID Connect provider at which people can log in, too")
	fs.StringVar(&f.openID.ClientID, "oidc-client-id", "", "what the provider knows the orchestrator as")
	fs.StringVar(&f.openID.SecretFile, "oidc-client-secret-file", "", "file with the client's secret (default: none, for a public client)")
	fs.StringVar(&f.openID.Name, "oidc-name", "", "the provider's name on the login page (default: the host of its URL)")
	fs.StringArrayVar(&f.openID.Roles, "oidc-role", nil, "which value of the role claim gives a role, as ROLE=VALUE; can be given several times")
	fs.StringVar(&f.openID.RoleClaim, "oidc-role-claim", "groups", "claim of the ID token whose values give roles")
	fs.StringVar(&f.openID.UserClaim, "oidc-user-claim", "preferred_username", "claim of the ID token with the name of a person")
	fs.StringSliceVar(&f.openID.Scopes, "oidc-scope", nil, "scopes to ask for, beyond openid and profile")
	fs.StringVar(&f.openID.CAFile, "oidc-ca", "", "authority of the provider's certificate, in PEM (default: those of the machine)")
	fs.BoolVar(&f.setup, "setup-token", false, "make a token in the data folder that adds another admin, where the admin's password is lost")
}

// database returns the URL of a flag, or that of the environment. It is no default of the
// flag: the help would print it, and there may be a password in it.
func database(flag string) string { return cmp.Or(flag, os.Getenv("LINKTRIAL_DATABASE")) }

// allowedHosts returns the names of the environment.
func allowedHosts() []string {
	return strings.FieldsFunc(os.Getenv("LINKTRIAL_ALLOW_HOST"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// stopLimit bounds the stop of the orchestrator.
const stopLimit = 20 * time.Second

// serve runs the orchestrator until ctx ends.
func (f *serveFlags) serve(ctx context.Context) error {
	log := f.s.Logger()
	cat, err := f.s.LoadCatalog()
	if err != nil {
		return err
	}
	if f.keepDays < 0 {
		return fmt.Errorf("--keep-samples-days %d, expected 0 (for ever) or more", f.keepDays)
	}
	var offered *lab.Served
	service, err := watchdog.Open(func(err error) { log.Warn("the service manager could not be notified", "error", err) })
	if err != nil {
		return err
	}
	defer service.Close()
	cfg := f.config(cat, log)
	cfg.Loop, cfg.Status = watchdog.NewLoop("the loop that moves runs along"), service.Status
	cfg.Lab = func(addr string) (rpc.Lab, error) {
		var err error
		offered, err = lab.NewServed(ctx, f.s, cat, addr, log)
		return offered, err
	}
	srv, err := server.Start(ctx, cfg)
	if err != nil {
		return err
	}
	if len(f.tokensFor) > 0 {
		err = srv.Authority().Issue(ctx, f.tokensFor, f.tokensTo)
	}
	if err == nil {
		log.Info("orchestrator is ready", "url", srv.URL(), "version", f.s.Version)
		service.Ready("works at " + srv.URL())
		service.Watch(cfg.Loop)
		select {
		case <-ctx.Done():
		case <-srv.Displaced():
			err = srv.DisplacedBy()
			log.Error("this orchestrator ends: its database is another's now", "error", err)
		}
		if offered != nil {
			offered.Close() // while its agents can still deliver what they have
		}
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return errors.Join(err, srv.Stop(stop))
}

func (f *serveFlags) config(cat *catalog.Catalog, log *slog.Logger) server.Config {
	cfg := f.s.ServerConfig(f.listen, database(f.database), cat, log)
	cfg.Open, cfg.TLS, cfg.TLSNames, cfg.TLSCert, cfg.TLSKey = f.tls.Open, f.tls.TLS, f.tls.TLSNames, f.tls.TLSCert, f.tls.TLSKey
	cfg.AllowHosts = slices.Concat(allowedHosts(), f.tls.AllowHosts)
	cfg.NotAnnouncedOn = func(i net.Interface) bool { return slices.Contains(f.radios, i.Name) }
	cfg.Login, cfg.Setup, cfg.SecondFactor, cfg.OpenID = f.login, f.setup, f.secondFactor, f.openID
	cfg.KeepSamples = time.Duration(f.keepDays) * 24 * time.Hour
	cfg.Drivers = &servedDrivers{s: f.s}
	if os.Getenv(faults.CampaignVariable) == "" {
		cfg.BeforeDatabase = func(dir string) error { return restoreDatabase(dir, log) }
	}
	return cfg
}

// restoreDatabase removes what a fault campaign that was killed may have left in the
// settings of a database, which would take no changes or not start.
func restoreDatabase(dir string, log *slog.Logger) error {
	restored, err := faults.RestoreDatabase(dir)
	if restored {
		log.Warn("removed a setting that a fault campaign had left in the database", "folder", dir)
	}
	return err
}
