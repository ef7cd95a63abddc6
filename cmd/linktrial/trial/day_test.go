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
	"linktrial/orchestrator/rpc/day"
)

// dayServer answers with one summary, and has one archive.
type dayServer struct {
	linktrialv1connect.UnimplementedDayServiceHandler
	last *linktrialv1.DayProgress
	err  error
}

func (d *dayServer) CloseDay(_ context.Context, req *connect.Request[linktrialv1.CloseDayRequest], stream *connect.ServerStream[linktrialv1.CloseDayResponse]) error {
	if req.Msg.Date != "2026-11-30" || req.Msg.Zone != "Europe/Berlin" {
		return connect.NewError(connect.CodeInvalidArgument, errors.New("another day"))
	}
	for _, p := range []*linktrialv1.DayProgress{{Doing: "auditing", Done: 0.5}, d.last} {
		if err := stream.Send(&linktrialv1.CloseDayResponse{Progress: p}); err != nil {
			return err
		}
	}
	return d.err
}

func (d *dayServer) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewDayServiceHandler(d))
	mux.HandleFunc("GET "+day.DownloadPath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("key") != "a key/+" {
			http.Error(w, "this archive is not here any more", http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, "the archive")
	})
	return plainServer(t, mux)
}

func TestDayIsFetched(t *testing.T) {
	out := filepath.Join(t.TempDir(), "day.zip")
	d := &dayServer{last: &linktrialv1.DayProgress{Done: 1, Key: "a key/+", Summary: &linktrialv1.DaySummary{Date: "2026-11-30"}}}
	base := d.serve(t)
	last, err := closeDay(t.Context(), base, "2026-11-30", "Europe/Berlin", false, out)
	require.NoError(t, err)
	require.Equal(t, "2026-11-30", last.Summary.Date)
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "the archive", string(b))
	st, err := os.Stat(out)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())

	// What goes wrong leaves the file that was there.
	for want, change := range map[string]func(){
		"this archive is not here any more":                      func() { d.last.Key = "old" },
		"the disk is full":                                       func() { d.err = connect.NewError(connect.CodeInternal, errors.New("the disk is full")) },
		"the orchestrator's answer ended before the archive was": func() { d.err, d.last = nil, &linktrialv1.DayProgress{Done: 0.9} },
	} {
		before, beforeErr := d.last, d.err
		change()
		_, err := closeDay(t.Context(), base, "2026-11-30", "Europe/Berlin", false, out)
		require.ErrorContains(t, err, want)
		d.last, d.err = before, beforeErr
		d.last.Key = "a key/+"
	}
	b, err = os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "the archive", string(b))
	_, err = closeDay(t.Context(), base, "2026-11-30", "Europe/Berlin", false, filepath.Join(t.TempDir(), "none", "day.zip"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestDayIsPrinted(t *testing.T) {
	well := func() *linktrialv1.DayProgress {
		return &linktrialv1.DayProgress{Bytes: 2049, Summary: &linktrialv1.DaySummary{Date: "2026-11-30", Zone: "UTC", Backup: &linktrialv1.DayBackup{Bytes: 1024, Fingerprint: "5d2c"},
			Campaigns: []*linktrialv1.DayCampaign{{Id: "m4t7xk2p", Plan: "quickstart", Files: 24, Runs: []*linktrialv1.DayRun{{Id: "m4t7xk2p-1", State: "completed", Passed: 10, Partly: 3}}}}}}
	}
	var out bytes.Buffer
	require.True(t, printDay(&out, well(), "day.zip"))
	require.Equal(t, `2026-11-30 (UTC): 1 campaign, 1 run
campaign m4t7xk2p (quickstart), 24 files exported
  run m4t7xk2p-1, completed: no findings; 10 checks passed, 3 partly checked
backup: 1 KiB, signed by this orchestrator's key. Keep the fingerprint apart from the file; a restore asks for it:
  5d2c
day.zip: 3 KiB
It holds the orchestrator's secret keys: store it where nobody else can read it.
`, out.String())
	for want, change := range map[string]func(*linktrialv1.DaySummary){
		"    FINDING stored: record 7 is missing\n": func(s *linktrialv1.DaySummary) {
			s.Campaigns[0].Runs[0].Findings, s.Campaigns[0].Runs[0].First = 1, []string{"stored: record 7 is missing"}
		},
		"not audited: no sheet\n":           func(s *linktrialv1.DaySummary) { s.Campaigns[0].Runs[0].Failure = "no sheet" },
		"  NOT EXPORTED cdf.svg: failed\n":  func(s *linktrialv1.DaySummary) { s.Campaigns[0].Failures = []string{"cdf.svg: failed"} },
		"not complete: Run x is not over\n": func(s *linktrialv1.DaySummary) { s.Incomplete = []string{"Run x is not over"} },
		"NO BACKUP: the disk is full\n":     func(s *linktrialv1.DaySummary) { s.Backup.Failure = "the disk is full" },
	} {
		p := well()
		change(p.Summary)
		out.Reset()
		require.False(t, printDay(&out, p, "day.zip"), want)
		require.Contains(t, out.String(), want)
	}
}
