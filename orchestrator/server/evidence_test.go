package server_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/signature"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/rpc/packing"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// A viewer packs the evidence of a campaign, under her name and by the orchestrator's key; who
// is not logged in gets none.
func TestEvidenceIsPacked(t *testing.T) {
	url, data := storetest.URL(t), t.TempDir()
	s := serveAll(t, url, data, nil)
	g := newGround(t, s.clients)
	stop(t, s.server)
	s = serveAll(t, url, data, func(c *server.Config) { c.Login = true })
	tokens := withPeople(t, s)

	ask := connect.NewRequest(&linktrialv1.PackRequest{CampaignId: g.campaign})
	ask.Header().Set("Authorization", "Bearer "+tokens["vera"])
	stream, err := linktrialv1connect.NewEvidenceServiceClient(s.http, s.base, connect.WithGRPC()).Pack(t.Context(), ask)
	require.NoError(t, err)
	var m *linktrialv1.PackResponse
	for stream.Receive() {
		m = stream.Msg()
	}
	require.NoError(t, stream.Err())
	require.True(t, m.Complete)

	fetch := func(user string) (int, []byte) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+packing.DownloadPath+"?key="+m.Key, http.NoBody)
		require.NoError(t, err)
		if user != "" {
			r.Header.Set("Authorization", "Bearer "+tokens[user])
		}
		res, err := s.http.Do(r)
		require.NoError(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, b
	}
	status, _ := fetch("")
	require.Equal(t, http.StatusUnauthorized, status)
	status, content := fetch("vera")
	require.Equal(t, http.StatusOK, status)
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	in, err := z.Open(evidence.Folder(g.campaign) + "/" + evidence.Index)
	require.NoError(t, err)
	text, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Contains(t, string(text), `"packed_by": "vera"`)

	keys := connect.NewRequest(&linktrialv1.ListSigningKeysRequest{})
	keys.Header().Set("Authorization", "Bearer "+tokens["vera"])
	known, err := linktrialv1connect.NewTrustServiceClient(s.http, s.base, connect.WithGRPC()).ListSigningKeys(t.Context(), keys)
	require.NoError(t, err)
	key, err := signature.NewPublicKey(known.Msg.Keys[len(known.Msg.Keys)-1].PublicKey)
	require.NoError(t, err)
	require.Equal(t, key.Fingerprint(), m.Fingerprint)

	log := connect.NewRequest(&linktrialv1.ListAuditRequest{Limit: 100})
	log.Header().Set("Authorization", "Bearer "+tokens["anna"])
	entries, err := linktrialv1connect.NewAccessServiceClient(s.http, s.base, connect.WithGRPC()).ListAudit(t.Context(), log)
	require.NoError(t, err)
	var outcomes []string
	for _, e := range entries.Msg.Entries {
		if e.Action == "EvidenceService.Pack" {
			outcomes = append(outcomes, e.User+" "+e.Outcome)
			require.Contains(t, e.Detail, g.campaign)
		}
	}
	require.Equal(t, []string{"vera done"}, outcomes)
}
