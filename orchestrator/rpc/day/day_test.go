package day_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/testkind"
	"linktrial/orchestrator/rpc/day"
	"linktrial/orchestrator/rpc/results"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/orchestrator/store/synthetic"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// noRuns is an OperatorService that knows no run: its audits fail.
type noRuns struct{}

func (noRuns) GetRun(context.Context, *connect.Request[linktrialv1.GetRunRequest]) (*connect.Response[linktrialv1.GetRunResponse], error) {
	return nil, connect.NewError(connect.CodeNotFound, errors.New("the run sheet is damaged"))
}

// served is a service with a database, over HTTP.
type served struct {
	base   string
	client linktrialv1connect.DayServiceClient
	db     *pgx.Conn
	folder string

	results day.Results
}

func serve(t *testing.T, change func(*day.Config), shapes ...synthetic.Shape) *served {
	t.Helper()
	url := storetest.URL(t)
	st, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	t.Cleanup(st.Close)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, s := range shapes {
		require.NoError(t, synthetic.Fill(t.Context(), conn, s))
	}
	cfg := day.Config{Store: st, Operator: noRuns{}, Results: results.New(results.Config{Store: st}), Folder: filepath.Join(t.TempDir(), "closed-day"), Version: "test",
		Now: func() time.Time { return time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC) }}
	if change != nil {
		change(&cfg)
	}
	s := day.New(cfg)
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewDayServiceHandler(s))
	mux.HandleFunc("GET "+day.DownloadPath, s.Download)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return &served{base: web.URL, client: linktrialv1connect.NewDayServiceClient(http.DefaultClient, web.URL), db: conn, folder: cfg.Folder, results: cfg.Results}
}

// closed is the last message of a day that is closed without a backup.
func (s *served) closed(ctx context.Context, date string) (*linktrialv1.DayProgress, error) {
	stream, err := s.client.CloseDay(ctx, connect.NewRequest(&linktrialv1.CloseDayRequest{Date: date}))
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	var last *linktrialv1.DayProgress
	for stream.Receive() {
		last = stream.Msg().Progress
	}
	return last, stream.Err()
}

func (s *served) withBackup(t *testing.T) *linktrialv1.DayProgress {
	t.Helper()
	stream, err := s.client.CloseDayWithBackup(t.Context(), connect.NewRequest(&linktrialv1.CloseDayWithBackupRequest{Date: "2026-05-04"}))
	require.NoError(t, err)
	defer func() { _ = stream.Close() }()
	var last *linktrialv1.DayProgress
	for stream.Receive() {
		last = stream.Msg().Progress
	}
	require.NoError(t, stream.Err())
	return last
}

func (s *served) get(t *testing.T, key string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+day.DownloadPath+"?key="+key, http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, b
}

// unpack are the files of an archive, without its folder.
func unpack(t *testing.T, b []byte, folder string) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	out := map[string]string{}
	for _, f := range z.File {
		in, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		name, ok := strings.CutPrefix(f.Name, folder+"/")
		require.True(t, ok, f.Name)
		out[name] = string(text)
	}
	return out
}

// end sets when the runs of a campaign ended.
func (s *served) end(t *testing.T, campaign, at string) {
	t.Helper()
	_, err := s.db.Exec(t.Context(), `UPDATE runs SET ended_at = $2::timestamptz WHERE campaign_id = $1`, campaign, at)
	require.NoError(t, err)
}

func small(id string) synthetic.Shape {
	return synthetic.Shape{ID: id, Runs: 2, Iterations: 3, Treatments: 2, Samples: 2}
}

// A day has what ended on it and nothing else; what fails is in the summary and leaves the
// rest.
func TestClosedDay(t *testing.T) {
	s := serve(t, nil, small("before"), small("first"), small("second"), small("after"), small("open"))
	for campaign, at := range map[string]string{"before": "2026-05-03T23:59:59.9Z", "first": "2026-05-04T00:00:00Z", "second": "2026-05-04T23:59:59.9Z", "after": "2026-05-05T00:00:00Z", "open": "2026-05-04T12:00:00Z"} {
		s.end(t, campaign, at)
	}
	_, err := s.db.Exec(t.Context(), `UPDATE runs SET state = 'running', ended_at = NULL, created_at = '2026-05-04T10:00:00Z', message = 'waits for client' WHERE id = 'open-2'`)
	require.NoError(t, err)
	_, err = s.db.Exec(t.Context(), `UPDATE runs SET prepared_at = coalesce(prepared_at, created_at) WHERE id = 'second-1'`)
	require.NoError(t, err)
	tag, err := s.db.Exec(t.Context(), `UPDATE run_nodes SET ended = NULL, committed_seq = 7 WHERE run_id = 'second-1' AND role = 'server'`)
	require.NoError(t, err)
	require.EqualValues(t, 1, tag.RowsAffected())

	m, err := s.closed(t.Context(), "2026-05-04")
	require.NoError(t, err)
	require.EqualValues(t, 1, m.Done)
	require.Equal(t, "linktrial-day-2026-05-04.zip", m.FileName)
	var ids []string
	for _, c := range m.Summary.Campaigns {
		ids = append(ids, c.Id)
		require.Len(t, c.Runs, 2)
		require.Empty(t, c.Failures)
		for _, r := range c.Runs {
			require.Equal(t, "the run sheet is damaged", r.Failure)
		}
	}
	require.Equal(t, []string{"first", "second"}, ids)
	require.Len(t, m.Summary.Incomplete, 2)
	require.Contains(t, m.Summary.Incomplete[0], "Run open-2 of open is not over (running): waits for client")
	require.Contains(t, m.Summary.Incomplete[1], "Run second-1: the journal of node ")
	require.Contains(t, m.Summary.Incomplete[1], "7 records are stored")
	require.Nil(t, m.Summary.Backup)

	status, b := s.get(t, m.Key)
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, m.Bytes, len(b))
	files := unpack(t, b, "linktrial-day-2026-05-04")
	inResults := 0
	for name := range files {
		if strings.HasPrefix(name, "first/results/") {
			inResults++
		}
	}
	require.EqualValues(t, m.Summary.Campaigns[0].Files, inResults)
	require.GreaterOrEqual(t, inResults, 15)
	for _, name := range []string{"results.json", "results.csv", "trials.csv", "samples.csv", "results.md", "results.svg"} {
		require.NotEmpty(t, files["second/results/"+name], "%s of %v", name, slices.Collect(names(files)))
		require.Contains(t, files["README.md"], "`CAMPAIGN/results/"+name+"`", "the README names every file")
	}
	for format, name := range map[string]string{"json": "results.json", "samples-csv": "samples.csv", "svg": "results.svg"} {
		var want bytes.Buffer
		require.NoError(t, s.results.Export(t.Context(), &linktrialv1.ResultsRequest{RunId: "second", Format: format}, func(m *linktrialv1.ResultsResponse) error {
			want.Write(m.Content)
			return nil
		}))
		require.Equal(t, want.String(), files["second/results/"+name], "the file is the one that is exported")
	}
	readme := files["README.md"]
	require.Contains(t, readme, "| `second-2` |")
	require.Contains(t, readme, "not audited: the run sheet is damaged")
	require.Contains(t, readme, "## Not complete\n\n- Run open-2 of open is not over")
	require.Contains(t, readme, "There is no backup in it")
	require.Contains(t, readme, "from 2026-05-04 00:00:00 UTC to 2026-05-05 00:00:00 UTC")
	var summary struct {
		Date      string
		Campaigns []struct{ ID string }
	}
	require.NoError(t, json.Unmarshal([]byte(files["summary.json"]), &summary))
	require.Equal(t, "2026-05-04", summary.Date)
	require.Len(t, summary.Campaigns, 2)

	left, err := os.ReadDir(s.folder)
	require.NoError(t, err)
	require.Len(t, left, 1, "only the archive is left")
	status, b = s.get(t, "wrong")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, string(b), "close the day again")
	before := m.Key
	m, err = s.closed(t.Context(), "2026-05-06")
	require.NoError(t, err)
	require.Empty(t, m.Summary.Campaigns)
	require.Len(t, m.Summary.Incomplete, 1, "the run is under way on the next days, too")
	status, _ = s.get(t, before)
	require.Equal(t, http.StatusNotFound, status, "the next archive takes the place of the one before")
}

func names(files map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for n := range files {
			if !yield(n) {
				return
			}
		}
	}
}

func TestBackupOfADay(t *testing.T) {
	fail := false
	s := serve(t, func(c *day.Config) {
		c.Backup = func(_ context.Context, out string) (string, error) {
			if fail {
				return "", errors.New("no space left on device")
			}
			return "5d2c", os.WriteFile(out, []byte("the backup"), 0o600)
		}
	})
	m := s.withBackup(t)
	require.Equal(t, "5d2c", m.Summary.Backup.Fingerprint)
	require.EqualValues(t, 10, m.Summary.Backup.Bytes)
	_, b := s.get(t, m.Key)
	files := unpack(t, b, "linktrial-day-2026-05-04")
	require.Equal(t, "the backup", files["backup/linktrial-backup-2026-05-04.tar.gz"])
	require.Contains(t, files["README.md"], "`5d2c`")
	require.Contains(t, files["README.md"], "No campaign ended on this day.")

	fail = true
	m = s.withBackup(t)
	require.Equal(t, "no space left on device", m.Summary.Backup.Failure)
	_, b = s.get(t, m.Key)
	files = unpack(t, b, "linktrial-day-2026-05-04")
	require.Len(t, files, 2, "README and summary")
	require.Contains(t, files["README.md"], "## What could not be made\n\n- backup: no space left on device")
}

// One day is closed at a time, and what a caller leaves is removed.
func TestOneDayAtATime(t *testing.T) {
	testkind.OfTest(t, testkind.RealTime, "waits for progress, which is told every second, and for what a caller left to be removed")
	begun := make(chan struct{})
	s := serve(t, func(c *day.Config) {
		c.Backup = func(ctx context.Context, out string) (string, error) {
			if err := os.WriteFile(out, []byte("secret"), 0o600); err != nil {
				return "", err
			}
			close(begun)
			<-ctx.Done()
			return "", ctx.Err()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := s.client.CloseDayWithBackup(ctx, connect.NewRequest(&linktrialv1.CloseDayWithBackupRequest{}))
	require.NoError(t, err)
	<-begun
	require.True(t, stream.Receive())
	require.Equal(t, "backup of the orchestrator", stream.Msg().Progress.Doing)
	_, err = s.closed(t.Context(), "")
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
	require.ErrorContains(t, err, "a day is being closed now")
	cancel()
	require.Eventually(t, func() bool {
		left, err := os.ReadDir(s.folder)
		return err == nil && len(left) == 0
	}, 20*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		m, err := s.closed(t.Context(), "")
		return err == nil && m.Summary.Date == "2026-11-30"
	}, 20*time.Second, 10*time.Millisecond, "the next one can be closed")
}

func TestDayIsRefused(t *testing.T) {
	s := serve(t, nil)
	_, err := s.closed(t.Context(), "2026-13-01")
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	s = serve(t, func(c *day.Config) { c.Folder = "" })
	_, err = s.closed(t.Context(), "")
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
	require.ErrorContains(t, err, "no data folder")
}

// What an earlier process left, which may be a backup, is removed at the start.
func TestLeftoversAreRemoved(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "closed-day")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "old"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "old.zip"), []byte("old"), 0o600))
	day.New(day.Config{Folder: folder})
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
	st, err := os.Stat(folder)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
}

// The text of an audit's outcome counts what the report has.
func TestAuditText(t *testing.T) {
	for want, r := range map[string]*linktrialv1.DayRun{
		"no findings; 13 checks passed":                 {Passed: 13},
		"1 finding; 11 checks passed, 1 partly checked": {Passed: 11, Partly: 1, Findings: 1},
		"3 findings; 1 check passed, 2 not checked":     {Passed: 1, NotChecked: 2, Findings: 3},
		"not audited: no sheet":                         {Failure: "no sheet", Findings: 2},
	} {
		require.Equal(t, want, day.AuditText(r))
	}
}
