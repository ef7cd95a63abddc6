package driver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/atomicfile"
	"linktrial/internal/inputfile"
	"linktrial/internal/signature"
	"linktrial/lab/uml"
	"linktrial/orchestrator/security/signing"
)

func newTrustClient(base string) linktrialv1connect.TrustServiceClient {
	return linktrialv1connect.NewTrustServiceClient(client.HTTP(), base, connect.WithGRPC())
}

func newSigning(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "signing",
		GroupID: setting.GroupPeople,
		Short:   "Print and rotate the keys that sign run sheets",
		Long: `The orchestrator signs every run sheet, and agents follow only sheets that are signed
with a key that they trust (docs/security-nodes.md).`,
	}
	cmd.AddCommand(newSigningKeys(s), newSigningRotate(s))
	return cmd
}

func newSigningKeys(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "keys",
		Short:   "Print the public keys, in the format of 'linktrial agent --trust FILE'",
		Example: `  linktrial signing keys > trusted-keys`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			keys, err := SigningKeys(cmd.Context(), s.Orchestrator)
			if err != nil {
				return err
			}
			_, err = os.Stdout.Write(signature.FormatKeys("Keys that sign the run sheets of "+s.Orchestrator+", the last one now.", keys...))
			return err
		},
	}
}

func newSigningRotate(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Sign with a new key from now on",
		Long: `Rotate makes a new key, which the key before it endorses, and signs with it from now
on. Sheets that are already signed stay valid. Nodes that trust an earlier key learn
the new one without a change to them. The old private key is deleted.`,
		Example: `  linktrial signing rotate`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := newTrustClient(s.Orchestrator).RotateSigningKey(cmd.Context(), connect.NewRequest(&linktrialv1.RotateSigningKeyRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			keys, err := publicKeys(res.Msg.Keys)
			if err != nil {
				return fmt.Errorf("the orchestrator's answer: %w", err)
			}
			if len(keys) < 2 {
				return fmt.Errorf("the orchestrator answers with %d signing keys, expected the new one and the one before it", len(keys))
			}
			fmt.Printf("Run sheets are signed with key %s from now on; key %s before it has endorsed it.\n", keys[len(keys)-1].ID(), keys[len(keys)-2].ID())
			return nil
		},
	}
}

func publicKeys(list []*linktrialv1.SigningKey) ([]signature.PublicKey, error) {
	out := make([]signature.PublicKey, len(list))
	for i, k := range list {
		var err error
		if out[i], err = signature.NewPublicKey(k.PublicKey); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// SigningKeys returns the public keys with which an orchestrator signs.
func SigningKeys(ctx context.Context, base string) ([]signature.PublicKey, error) {
	res, err := newTrustClient(base).ListSigningKeys(ctx, connect.NewRequest(&linktrialv1.ListSigningKeysRequest{}))
	if err != nil {
		return nil, client.Error(base, err)
	}
	return publicKeys(res.Msg.Keys)
}

// OwnKeys returns the public signing keys of the orchestrator with this data folder.
func OwnKeys(data string) ([]signature.PublicKey, error) {
	path := filepath.Join(signing.Dir(data), signing.PublicFile)
	b, err := inputfile.Read(path, signature.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("signing keys: %w", err)
	}
	return signature.ParseKeys(path, b)
}

// WriteTrusted writes a file of trusted keys into a folder, which it makes, and
// returns the path of the file. Without keys it writes none and returns "".
func WriteTrusted(dir string, keys []signature.PublicKey) (string, error) {
	if len(keys) == 0 {
		return "", nil
	}
	path := filepath.Join(dir, signing.PublicFile)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("trusted keys: %w", err)
	}
	if err := atomicfile.Write(path, signature.FormatKeys("Keys of the orchestrator that this lab was brought up for.", keys...), 0o644); err != nil {
		return "", fmt.Errorf("trusted keys: %w", err)
	}
	return path, nil
}

// SignedSheet returns a run's sheet as agents get it, and the keys that verify it,
// for the virtual-time lab, which has no control link.
func SignedSheet(ctx context.Context, base, run string) (uml.Sheet, []signature.PublicKey, error) {
	res, err := newTrustClient(base).GetSignedSheet(ctx, connect.NewRequest(&linktrialv1.GetSignedSheetRequest{RunId: run}))
	if err != nil {
		return uml.Sheet{}, nil, client.Error(base, err)
	}
	keys, err := publicKeys(res.Msg.Keys)
	if err != nil {
		return uml.Sheet{}, nil, err
	}
	sig := signature.Signature{KeyID: res.Msg.Signature.GetKeyId(), Bytes: res.Msg.Signature.GetSignature()}
	return uml.Sheet{Run: run, Document: res.Msg.Sheet, Signature: sig}, keys, nil
}
