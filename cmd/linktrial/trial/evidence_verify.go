package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/inputfile"
	"linktrial/internal/signature"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/rpc/rebuild"
	"linktrial/orchestrator/security/signing"
)

// rebuildFunc makes the exported files of a bag again from its journals.
type rebuildFunc func(ctx context.Context, bag *evidence.Bag, progress func(doing string, share float64)) (*evidence.Rebuilt, error)

// rebuilder is what makes a bag's files again. This is the one place that knows who does it.
func rebuilder(s *setting.Settings) rebuildFunc {
	return func(ctx context.Context, bag *evidence.Bag, progress func(doing string, share float64)) (*evidence.Rebuilt, error) {
		return rebuild.Rebuild(ctx, rebuild.Config{Bag: bag, Index: bag.Index, Version: s.Version, Progress: progress})
	}
}

// Exit codes of evidence verify, beside 0 without findings.
const (
	codeFindings  = 1
	codeUnchecked = 2 // the bag could not be read, or its files not be made again
)

func newEvidenceVerify(s *setting.Settings) *cobra.Command {
	var key string
	var asJSON, noRebuild bool
	cmd := &cobra.Command{
		Use:   "verify BAG",
		Short: "Check every signature and digest of a bag, and make its exported files again",
		Long: `Verify reads a bag of evidence, the ZIP or the folder that it was unpacked to, and
checks that it is whole, that nothing in it was changed, and who signed the bag, the run
sheets and each node's journal (docs/evidence.md). It then makes the exported files again
from the journals alone, and compares them with those in the bag byte for byte.

A signature proves who signed to those who know the key. Give the keys of the orchestrator
with --key, in a file as its 'linktrial signing keys' prints it; on the orchestrator's own
machine they are known. Without them verify says which key signed the bag, for you to
compare.

The exit code is 0 without findings, 1 with some, and 2 where the bag could not be read or
its files not be made again. What is not signed is no finding, but is said.`,
		Example: `  linktrial evidence verify trial.zip
  linktrial evidence verify trial.zip --key trusted-keys
  linktrial evidence verify trial.zip --no-rebuild --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			known, err := knownHere(key)
			if err != nil {
				return setting.Failed{Code: codeUnchecked, Err: err}
			}
			shown := terminal.NewLateStages(os.Stderr, progressAfter)
			bag, v, err := verifyBag(cmd.Context(), args[0], known, shown.Stage)
			if err != nil {
				shown.Finish()
				return setting.Failed{Code: codeUnchecked, Err: err}
			}
			defer func() { _ = bag.Close() }() // only read
			notMade := ""
			if !noRebuild {
				notMade = rebuildInto(cmd.Context(), rebuilder(s), bag, v, shown.Stage)
			}
			shown.Finish()
			if err := printVerdict(cmd.OutOrStdout(), v, notMade, asJSON); err != nil {
				return err
			}
			switch {
			case v.Findings() > 0:
				return setting.ExitCode(codeFindings)
			case notMade != "":
				return setting.Failed{Code: codeUnchecked, Err: fmt.Errorf("the exported files were not made again: %s", notMade)}
			}
			return nil
		},
	}
	keyFlag(cmd, &key)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the verdict as JSON")
	cmd.Flags().BoolVar(&noRebuild, "no-rebuild", false, "do not make the exported files again")
	return cmd
}

func keyFlag(cmd *cobra.Command, key *string) {
	cmd.Flags().StringVar(key, "key", "", "file with the orchestrator's keys, as 'linktrial signing keys' prints them (default: those of the orchestrator on this machine, if there is one)")
}

// knownHere is whom this machine trusts: the keys of a file, else those of orchestrators on
// this machine, and the authorities of 'linktrial trust'.
func knownHere(file string) (known evidence.Known, err error) {
	paths := []string{file}
	if file == "" {
		paths = nil
		for _, dir := range client.Trusted.Folders() {
			paths = append(paths, filepath.Join(signing.Dir(dir), signing.PublicFile))
		}
	}
	for _, path := range paths {
		text, err := inputfile.Read(path, signature.MaxFile)
		if file == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
			continue // no orchestrator, or another user's
		}
		if err != nil {
			return known, fmt.Errorf("keys of the orchestrator: %w", err)
		}
		keys, err := signature.ParseKeys(path, text)
		if err != nil {
			return known, err
		}
		known.Keys, known.From = append(known.Keys, keys...), path
	}
	known.Authorities, err = client.Trusted.KeptAuthorities()
	return known, err
}

// verifyBag opens and checks a bag. The caller closes it.
func verifyBag(ctx context.Context, path string, known evidence.Known, progress func(string, float64)) (*evidence.Bag, *evidence.Verdict, error) {
	progress("opening the bag", 0)
	bag, err := evidence.Open(path, evidence.DefaultLimits())
	if err != nil {
		return nil, nil, err
	}
	v, err := evidence.Verify(ctx, bag, known, func(_ string, share float64) { progress("checking the bag", share) })
	if err != nil {
		return nil, nil, errors.Join(err, bag.Close())
	}
	return bag, v, nil
}

// rebuildInto makes the bag's files again and adds what came of it to the verdict, or returns
// why they were not made.
func rebuildInto(ctx context.Context, again rebuildFunc, bag *evidence.Bag, v *evidence.Verdict, progress func(string, float64)) (notMade string) {
	if v.Findings() > 0 {
		return "the bag has findings"
	}
	var err error
	if v.Rebuilt, err = again(ctx, bag, progress); err != nil {
		v.Rebuilt = nil
		return err.Error()
	}
	return ""
}

// verdictJSON is a verdict as a program reads it.
type verdictJSON struct {
	*evidence.Verdict
	Findings   int    `json:"findings"`
	NotRebuilt string `json:"not_rebuilt_because,omitempty"`
}

func encodeVerdict(v *evidence.Verdict, notMade string) ([]byte, error) {
	b, err := json.MarshalIndent(verdictJSON{v, v.Findings(), notMade}, "", "  ")
	return append(b, '\n'), err
}
