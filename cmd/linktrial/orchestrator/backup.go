package orchestrator

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
	"linktrial/orchestrator/backup"
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
	var out, database string
	cmd := &cobra.Command{
		Use:   "create --out FILE.tar.gz",
		Short: "Write the store and the orchestrator's keys into one file; the orchestrator may be running",
		Example: `  linktrial backup create --out /media/usb/trial.tar.gz
  linktrial --data /var/lib/linktrial-orchestrator backup create --out trial.tar.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := backup.Create(cmd.Context(), backup.Source{DataDir: s.Data, DatabaseURL: database}, out, s.Version, time.Now())
			if err != nil {
				return err
			}
			st, err := os.Stat(out)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %d KiB, linktrial %s, migration %d. It holds the orchestrator's secret keys: store it where nobody else can read it.\n",
				out, (st.Size()+1023)/1024, m.Version, m.Schema)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "the file to write")
	f.StringVar(&database, "database", "", "PostgreSQL URL, where 'linktrial serve' has one")
	setting.Require(cmd, "out")
	return cmd
}

func newBackupRestore(s *setting.Settings) *cobra.Command {
	var database string
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into a data folder without a database, or into an empty database",
		Example: `  linktrial --data /tmp/look backup restore trial.tar.gz
  linktrial backup restore trial.tar.gz --database postgres://linktrial@db/linktrial`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := backup.Restore(cmd.Context(), args[0], backup.Source{DataDir: s.Data, DatabaseURL: database})
			if err != nil {
				return err
			}
			fmt.Printf("restored into %s: the store of linktrial %s as of %s\n", s.Data, m.Version, m.Taken.Format(time.DateTime+" UTC"))
			return nil
		},
	}
	cmd.Flags().StringVar(&database, "database", "", "PostgreSQL URL of an empty database, instead of a private one in the data folder")
	return cmd
}
