package orchestrator

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
	"linktrial/orchestrator/backup"
)

func newStore(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "The orchestrator's store: backup and restore"}
	cmd.AddCommand(newStoreBackup(s), newStoreRestore(s))
	return cmd
}

func newStoreBackup(s *setting.Settings) *cobra.Command {
	var out, database string
	cmd := &cobra.Command{
		Use:   "backup --out FILE.tar.gz",
		Short: "Write the store and the orchestrator's keys into one file; the orchestrator may be at work",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := backup.Create(cmd.Context(), backup.Source{DataDir: s.Data, DatabaseURL: database}, out, s.Version, time.Now())
			if err != nil {
				return err
			}
			st, err := os.Stat(out)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %d KiB, linktrial %s, migration %d. It holds the orchestrator's keys: keep it where nobody else reads it.\n",
				out, (st.Size()+1023)/1024, m.Version, m.Schema)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "the file to write")
	f.StringVar(&database, "database", "", "PostgreSQL URL, where serve was given one")
	setting.Require(cmd, "out")
	return cmd
}

func newStoreRestore(s *setting.Settings) *cobra.Command {
	var database string
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Bring a backup back, into a data folder without a database or an empty database",
		Args:  cobra.ExactArgs(1),
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
