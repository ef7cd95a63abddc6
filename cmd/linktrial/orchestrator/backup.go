package orchestrator

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/inputfile"
	"linktrial/internal/signature"
	"linktrial/internal/unit"
	"linktrial/orchestrator/backup"
	"linktrial/orchestrator/security/signing"
)

func newBackup(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "backup",
		GroupID: setting.GroupService,
		Short:   "Back up the orchestrator's store and keys, and restore them",
		Long: `A backup is one file with the orchestrator's store (plans, runs, results, people,
nodes) and its keys (docs/backup.md). It holds no program; the file that installs
machines without internet is an install bundle ('linktrial install-bundle').`,
	}
	cmd.AddCommand(newBackupCreate(s), newBackupRestore(s))
	return cmd
}

func newBackupCreate(s *setting.Settings) *cobra.Command {
	var out, url string
	cmd := &cobra.Command{
		Use:   "create --out FILE.tar.gz",
		Short: "Write the store and the orchestrator's keys into one file; the orchestrator may be running",
		Example: `  linktrial backup create --out /media/usb/trial.tar.gz
  linktrial --data /var/lib/linktrial-orchestrator backup create --out trial.tar.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			keys, err := signing.Existing(signing.Dir(s.Data))
			if err != nil {
				return err
			}
			m, err := backup.Create(cmd.Context(), backup.Source{DataDir: s.Data, DatabaseURL: database(url)}, out, s.Version, time.Now(), keys)
			if err != nil {
				return err
			}
			st, err := os.Stat(out)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %d KiB, linktrial %s, migration %d. It holds the orchestrator's secret keys: store it where nobody else can read it.\n",
				out, (st.Size()+1023)/1024, m.Version, m.Schema)
			fmt.Printf("It is signed by this orchestrator's key. Keep the fingerprint apart from the file; a restore asks for it:\n  %s\n", keys.Fingerprint())
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "the file to write")
	f.StringVar(&url, "database", "", "PostgreSQL URL, where 'linktrial serve' has one (or LINKTRIAL_DATABASE)")
	setting.Require(cmd, "out")
	return cmd
}

func newBackupRestore(s *setting.Settings) *cobra.Command {
	var url, foreign, trusted string
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into a data folder without a database, or into an empty database",
		Long: `Restore a backup into a data folder without a database, or into an empty database.

A backup is signed by the orchestrator that made it. Its rows become the store's, its
people can log in and its keys sign run sheets, so say whose backups you trust: with
the fingerprint that 'linktrial backup create' printed, or with the file of public
keys of that orchestrator (DATA/signing/trusted-keys). Without either, the command
shows the fingerprint and asks.

The schema comes from this program; nothing in a backup is executed.`,
		Example: `  linktrial --data /tmp/look backup restore trial.tar.gz
  linktrial backup restore trial.tar.gz --accept-foreign 5d2c…
  linktrial backup restore trial.tar.gz --trusted-keys /var/lib/linktrial-orchestrator.before/signing/trusted-keys
  linktrial backup restore trial.tar.gz --database postgres://linktrial@db/linktrial`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			accept, err := accepting(trusted, foreign)
			if err != nil {
				return err
			}
			m, err := backup.Restore(cmd.Context(), args[0], backup.Source{DataDir: s.Data, DatabaseURL: database(url)}, accept)
			if err != nil {
				return err
			}
			fmt.Printf("restored into %s: the store of linktrial %s as of %s\n", s.Data, m.Version, unit.Moment(m.Taken))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "database", "", "PostgreSQL URL of an empty database, instead of a private one in the data folder (or LINKTRIAL_DATABASE)")
	f.StringVar(&foreign, "accept-foreign", "", "fingerprint of the key that signed the backup: 64 hexadecimal digits")
	f.StringVar(&trusted, "trusted-keys", "", "file of the public keys whose backups are trusted, as 'linktrial signing keys' prints it")
	return cmd
}

// accepting is whose backups a restore takes: those of the keys of a file, and of a
// fingerprint; a person at a terminal is asked about any other.
func accepting(trusted, fingerprint string) (backup.Accept, error) {
	keys := signature.NewKeys()
	if trusted != "" {
		b, err := inputfile.Read(trusted, signature.MaxFile)
		if err != nil {
			return nil, fmt.Errorf("trusted keys: %w", err)
		}
		list, err := signature.ParseKeys(trusted, b)
		if err != nil {
			return nil, err
		}
		keys = signature.NewKeys(list...)
	}
	fingerprint = strings.ToLower(strings.NewReplacer(":", "", " ", "").Replace(fingerprint))
	if b, err := hex.DecodeString(fingerprint); fingerprint != "" && (err != nil || len(b) != 32) {
		return nil, fmt.Errorf("--accept-foreign %.80q, expected 64 hexadecimal digits, as 'linktrial backup create' prints them", fingerprint)
	}
	known := backup.AcceptKeys(keys, fingerprint)
	return func(k signature.PublicKey, m *backup.Manifest) error {
		err := known(k, m)
		var foreign *backup.ForeignError
		if !errors.As(err, &foreign) || trusted != "" || fingerprint != "" || !term.IsTerminal(int(os.Stdin.Fd())) {
			return err
		}
		fmt.Printf("The backup of linktrial %q at %s is signed by the orchestrator with the key\n  %s\nIs it the one that 'linktrial backup create' printed? [yes/no] ", m.Version, unit.Moment(m.Taken), k.Fingerprint())
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		if strings.TrimSpace(line) != "yes" {
			return errors.New("nothing was restored: the key was not confirmed")
		}
		return nil
	}, nil
}
