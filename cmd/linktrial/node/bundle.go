package node

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"linktrial/bundle"
	"linktrial/cmd/linktrial/setting"
	"linktrial/licences"
	"linktrial/playbooks"
	profiles "linktrial/radio-profiles"
)

func newBundle(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "install-bundle",
		GroupID: setting.GroupNodes,
		Short:   "Make, sign and check the file that installs nodes and orchestrator on machines without internet",
		Long: `An install bundle is one file with everything that machines without internet need to
become nodes or orchestrator: program, drivers, Debian packages, container images,
playbooks and radio profiles. It holds no results and no keys; a copy of an
orchestrator's data is a backup ('linktrial backup').`,
	}
	cmd.AddCommand(newBundleCreate(s), newBundleCheck(), newBundleKey(), newBundleSign(), newBundleSignImages(), newBundleCheckImages())
	return cmd
}

func newBundleCreate(s *setting.Settings) *cobra.Command {
	cfg := bundle.Config{Folders: map[string]fs.FS{"playbooks": playbooks.Files, "radio-profiles": profiles.Files, "licences": licences.Files}}
	var sets []string
	var key string
	cmd := &cobra.Command{
		Use:   "create --out FILE.tar.gz",
		Short: "Pack program, drivers, Debian packages, images and playbooks (on Debian, with internet)",
		Example: `  linktrial install-bundle create --out linktrial.tar.gz
  linktrial install-bundle create --out linktrial.tar.gz --key linktrial.key
  linktrial install-bundle create --out linktrial.tar.gz --packages base,drivers,docker --image linktrial/tcp`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !strings.HasSuffix(cfg.Out, ".tar.gz") {
				return fmt.Errorf("--out %q, expected a name that ends in .tar.gz", cfg.Out)
			}
			known, err := bundle.ReadPackages(playbooks.Files)
			if err != nil {
				return err
			}
			for _, set := range sets {
				names, ok := known[set]
				if !ok && set != "none" {
					return fmt.Errorf("--packages %q, expected none or some of %s", set, strings.Join(bundle.SetNames(known), ", "))
				}
				cfg.Packages = append(cfg.Packages, names...)
			}
			if cfg.Program == "" {
				if cfg.Program, err = os.Executable(); err != nil {
					return err
				}
			}
			if cfg.Modified, err = sourceDate(cfg.Program); err != nil {
				return err
			}
			if key != "" {
				if cfg.Key, err = bundle.ReadKey(key, passphrase); err != nil {
					return err
				}
			}
			cfg.Drivers, cfg.Version, cfg.Logger = s.Drivers, s.Version, s.Logger()
			m, err := bundle.Create(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			st, err := os.Stat(cfg.Out)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %.1f MiB, linktrial %s for %s, drivers %s, %d packages, %d images\n", cfg.Out, float64(st.Size())/(1<<20),
				m.Version, m.Architecture, strings.Join(m.Drivers, " "), len(m.Packages), len(m.Images))
			if cfg.Key != nil {
				fmt.Printf("%s: signed by key %s\n", cfg.Out+bundle.SignatureSuffix, cfg.Key.Public())
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Out, "out", "", "the archive to write, FILE.tar.gz")
	f.StringVar(&cfg.Program, "program", "", "the program to pack (default: this one)")
	f.StringVar(&key, "key", "", "a private key that signs the bundle ('linktrial install-bundle key')")
	f.StringSliceVar(&sets, "packages", []string{"base", "drivers", "orchestrator"}, "sets of Debian packages: base, docker, drivers, orchestrator; or none")
	f.StringVar(&cfg.Debian.Suite, "debian", "bookworm", "Debian of the nodes: "+strings.Join(bundle.Suites, " or "))
	f.StringVar(&cfg.Debian.Mirror, "mirror", "http://deb.debian.org/debian", "where Debian's packages are fetched")
	f.StringVar(&cfg.Debian.Security, "security-mirror", "http://deb.debian.org/debian-security", "where Debian's security updates are fetched; empty for none")
	f.StringArrayVar(&cfg.Images, "image", nil, "a container image of this machine to pack; again for more")
	setting.Require(cmd, "out")
	return cmd
}

// sourceDate returns the modification time of the bundle's files: SOURCE_DATE_EPOCH
// or, where that is not set, the time of the program.
func sourceDate(program string) (time.Time, error) {
	if v := os.Getenv("SOURCE_DATE_EPOCH"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q, expected seconds since 1970", v)
		}
		return time.Unix(n, 0).UTC(), nil
	}
	st, err := os.Stat(program)
	if err != nil {
		return time.Time{}, err
	}
	return st.ModTime().UTC(), nil
}

func newBundleCheck() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "check FILE|FOLDER",
		Short: "Verify an install bundle's signature, read it to its end and compare every checksum",
		Long: `Check reads an install bundle to its end and compares every checksum. With --key it
first verifies that the key has signed it. Without, it says nothing of who made the
bundle: checksums that are in it were written with it. Of a folder that 'install-bundle
sign' has signed, such as the one with program and drivers, it verifies signature and
files; of a laptop package (linktrial_VERSION_amd64.deb or .tar.gz) the signature. Both
take --key.`,
		Example: `  linktrial install-bundle check linktrial.tar.gz --key linktrial.pub
  linktrial install-bundle check linktrial.tar.gz
  linktrial install-bundle check bin --key linktrial.pub`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if key != "" {
				public, err := publicKey(key)
				if err != nil {
					return err
				}
				if err := public.Verify(args[0]); err != nil {
					return err
				}
				fmt.Printf("%s is signed by key %s\n", args[0], public.ID())
			}
			what := ""
			if st, err := os.Stat(args[0]); err == nil && st.IsDir() {
				what = "folder"
			} else if bundle.IsLaptopPackage(args[0]) {
				what = "laptop package"
			}
			if what != "" {
				if key == "" {
					return fmt.Errorf("%s is a %s, of which only the signature can be verified: give the public key with --key", args[0], what)
				}
				return nil
			}
			r, err := bundle.Check(args[0])
			if err != nil {
				return err
			}
			m := r.Manifest
			fmt.Printf("%s is in order: %d files, %.1f MiB, linktrial %s for %s\n", args[0], r.Files, float64(r.Bytes)/(1<<20), m.Version, m.Architecture)
			fmt.Println("drivers:", strings.Join(m.Drivers, " "))
			if len(m.Packages) > 0 {
				var names []string
				for _, p := range m.Packages {
					names = append(names, p.Name)
				}
				slices.Sort(names)
				fmt.Printf("packages of Debian %s: %s\n", m.Debian, strings.Join(names, " "))
			}
			for _, i := range m.Images {
				fmt.Println("image:", i.Name, i.ID)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "public key of who made the bundle: the line RWQ…, or its file")
	return cmd
}
