package trial

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/rpc/packing"
)

// evidenceServer answers with one message, and has one bag.
type evidenceServer struct {
	linktrialv1connect.UnimplementedEvidenceServiceHandler
	last *linktrialv1.PackResponse
	err  error
}

func (d *evidenceServer) Pack(_ context.Context, req *connect.Request[linktrialv1.PackRequest], stream *connect.ServerStream[linktrialv1.PackResponse]) error {
	if req.Msg.CampaignId != "m4t7" {
		return connect.NewError(connect.CodeNotFound, errors.New("there is no such campaign"))
	}
	for _, p := range []*linktrialv1.PackResponse{{Doing: "exporting the results", Done: 0.5}, d.last} {
		if err := stream.Send(p); err != nil {
			return err
		}
	}
	return d.err
}

func (d *evidenceServer) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewEvidenceServiceHandler(d))
	mux.HandleFunc("GET "+packing.DownloadPath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("key") != "a key/+" {
			http.Error(w, "this evidence is not here any more", http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, "the bag")
	})
	return plainServer(t, mux)
}

func TestEvidenceIsFetched(t *testing.T) {
	t.Chdir(t.TempDir())
	d := &evidenceServer{last: &linktrialv1.PackResponse{Done: 1, Key: "a key/+", FileName: "../linktrial-m4t7xk2p-evidence.zip", CampaignId: "m4t7xk2p", Runs: 2, Files: 40, Journals: 4, SignedJournals: 3, Bytes: 7,
		Missing: []string{"the signature of the journal of node server of run m4t7xk2p-1: the node signed nothing"}, Fingerprint: "0a1b", SshFingerprint: "SHA256:abc"}}
	base := d.serve(t)
	packed, at, err := packEvidence(t.Context(), base, "m4t7", "")
	require.NoError(t, err)
	require.Equal(t, "linktrial-m4t7xk2p-evidence.zip", at, "in this folder, whatever the orchestrator says")
	b, err := os.ReadFile(at)
	require.NoError(t, err)
	require.Equal(t, "the bag", string(b))
	var out bytes.Buffer
	printPacked(&out, packed, at)
	require.Equal(t, `campaign m4t7xk2p: 2 runs, 40 files, 3 of 4 journals signed by their nodes
NOT COMPLETE: a run is under way; pack it again when it has ended
missing: the signature of the journal of node server of run m4t7xk2p-1: the node signed nothing
signed by this orchestrator's key; give its fingerprint to others over another way than the file:
  0a1b
  SHA256:abc (as ssh-keygen shows it)
linktrial-m4t7xk2p-evidence.zip: 1 KiB
`, out.String())

	// What goes wrong leaves the file that was there.
	file := filepath.Join(t.TempDir(), "bag.zip")
	require.NoError(t, os.WriteFile(file, []byte("the old one"), 0o600))
	for want, change := range map[string]func(){
		"this evidence is not here any more":                      func() { d.last.Key = "old" },
		"the disk is full":                                        func() { d.err = connect.NewError(connect.CodeInternal, errors.New("the disk is full")) },
		"the orchestrator's answer ended before the evidence was": func() { d.last.Key = "" },
	} {
		d.last.Key, d.err = "a key/+", nil
		change()
		_, _, err := packEvidence(t.Context(), base, "m4t7", file)
		require.ErrorContains(t, err, want)
		left, err := os.ReadDir(filepath.Dir(file))
		require.NoError(t, err)
		require.Len(t, left, 1)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "the old one", string(b))
	}
	_, _, err = packEvidence(t.Context(), base, "none", file)
	require.ErrorContains(t, err, "there is no such campaign")
}
