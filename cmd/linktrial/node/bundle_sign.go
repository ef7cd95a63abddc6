package node

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"linktrial/bundle"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/inputfile"
)

func newBundleKey() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "key --out NAME",
		Short: "Make the key of those who make install bundles",
		Long: `Key makes an Ed25519 key and writes NAME.key, which signs, and NAME.pub, which verifies, in
the format of minisign(1). Who has NAME.key can make bundles that machines install: keep it
on a medium that is connected only for signing. It is not encrypted; a key of minisign -G,
which is, does as well.`,
		Example: `  linktrial install-bundle key --out linktrial`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			private, public, err := bundle.NewKey()
			if err != nil {
				return err
			}
			for _, f := range []struct {
				name string
				text []byte
				mode os.FileMode
			}{{out + ".key", private, 0o600}, {out + ".pub", public, 0o644}} {
				// A key that is there is never replaced.
				file, err := os.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
				if err != nil {
					return err
				}
				_, err = file.Write(f.text)
				if err := errors.Join(err, file.Close()); err != nil {
					return err
				}
			}
			key, err := bundle.ParsePublicKey(string(public))
			if err != nil {
				return err
			}
			fmt.Printf("%s.key signs, %[1]s.pub verifies: %s\n", out, key)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "name of the two files, without .key and .pub")
	setting.Require(cmd, "out")
	return cmd
}

func newBundleSign() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "sign FILE|FOLDER... --key NAME.key",
		Short: "Sign install bundles, programs, or folders of them",
		Long: `Sign writes FILE.minisig beside each file. Of a folder, such as the one with the program and
the drivers, it writes the checksums of all files to FOLDER/SHA256SUMS and signs that.
minisign -Vm FILE -P RWQ… verifies the signatures, too.`,
		Example: `  linktrial install-bundle sign bin --key linktrial.key
  linktrial install-bundle sign linktrial.tar.gz --key linktrial.key`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			k, err := bundle.ReadKey(key, passphrase)
			if err != nil {
				return err
			}
			for _, path := range args {
				file, err := k.Sign(path)
				if err != nil {
					return err
				}
				fmt.Printf("%s: signed by key %s\n", file, k.Public())
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "private key")
	setting.Require(cmd, "key")
	return cmd
}

func newBundleSignImages() *cobra.Command {
	var key, out string
	cmd := &cobra.Command{
		Use:   "sign-images NAME... --out FILE --key NAME.key",
		Short: "Sign a list of container images with their identities",
		Long: `Sign-images asks docker for the identity of each image, which covers all of its layers,
writes them to FILE, and signs that (FILE.minisig). Where the images are used, however they
come there, 'install-bundle check-images' compares.`,
		Example: `  linktrial install-bundle sign-images linktrial/agent:latest linktrial/tcp:latest --out images.txt --key linktrial.key`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := bundle.ReadKey(key, passphrase)
			if err != nil {
				return err
			}
			file, err := k.SignImages(cmd.Context(), args, out)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %d images, signed by key %s\n", file, len(args), k.Public())
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "private key")
	cmd.Flags().StringVar(&out, "out", "", "file to write")
	setting.Require(cmd, "key", "out")
	return cmd
}

func newBundleCheckImages() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "check-images FILE --key NAME.pub",
		Short: "Verify that docker's images are those of a signed list",
		Long: `Check-images verifies the signature of a list that 'install-bundle sign-images' has made,
and that docker has each of its images, and no other one under the name.`,
		Example: `  linktrial install-bundle check-images images.txt --key linktrial.pub`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			public, err := publicKey(key)
			if err != nil {
				return err
			}
			images, err := public.VerifyImages(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			fmt.Printf("%s is signed by key %s\n", args[0], public.ID())
			for _, i := range images {
				fmt.Println("image:", i.Name, i.ID)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "public key of who signed the list: the line RWQ…, or its file")
	setting.Require(cmd, "key")
	return cmd
}

// publicKey returns a public key that is given as its line or as a file.
func publicKey(text string) (bundle.PublicKey, error) {
	if k, err := bundle.ParsePublicKey(text); err == nil {
		return k, nil
	}
	const limit = 64 << 10
	b, err := inputfile.Read(text, limit)
	if err != nil {
		return bundle.PublicKey{}, fmt.Errorf("--key %q, expected a public key such as RWQ…, or its file: %w", text, err)
	}
	k, err := bundle.ParsePublicKey(string(b))
	if err != nil {
		return k, fmt.Errorf("--key %s: %w", text, err)
	}
	return k, nil
}

// passphrase asks for the passphrase of an encrypted key.
func passphrase() (string, error) {
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		return "", errors.New("the private key is encrypted, and there is no terminal to ask for its passphrase: use one that is not, on a medium of its own")
	}
	fmt.Fprint(os.Stderr, "Passphrase of the private key: ")
	b, err := term.ReadPassword(in)
	fmt.Fprintln(os.Stderr)
	return strings.TrimRight(string(b), "\r\n"), err
}
