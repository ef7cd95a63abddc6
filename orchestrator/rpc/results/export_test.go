package results

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/report/reporttest"
	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/orchestrator/store/synthetic"
	"linktrial/protocols/contract"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// filled is a service whose store has campaigns, and a connection to its database.
func filled(t testing.TB, stopping <-chan struct{}, shapes ...synthetic.Shape) (*Service, *pgx.Conn) {
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
	return New(Config{Store: st, Stopping: stopping}), conn
}

// exported is the whole file of a request, and its head.
func exported(t *testing.T, s *Service, m *linktrialv1.ResultsRequest) (*linktrialv1.ResultsResponse, string) {
	t.Helper()
	var head *linktrialv1.ResultsResponse
	var content bytes.Buffer
	require.NoError(t, s.Export(t.Context(), m, func(part *linktrialv1.ResultsResponse) error {
		if head == nil {
			head = part
		}
		content.Write(part.Content)
		return nil
	}))
	return head, content.String()
}

// Other programs read the file: its bytes are those of a csv.Writer that writes trial by
// trial, whatever the pages in which samples are read.
func TestSamplesFile(t *testing.T) {
	s, conn := filled(t, nil, synthetic.Shape{ID: "wide", Runs: 2, Iterations: 9, Treatments: 4, Samples: 40}, synthetic.Shape{ID: "tiny", Runs: 1, Iterations: 2, Treatments: 2, Samples: 3})
	_, err := conn.Exec(t.Context(), `UPDATE trials SET treatment = '=a "b", c' WHERE run_id = 'wide-2' AND trial % 3 = 0`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `UPDATE samples SET side = 'server', cwnd_bytes = NULL, pacing_bps = elapsed_ns / 7.0 WHERE elapsed_ns % 3 = 0; DELETE FROM samples WHERE trial BETWEEN 4 AND 6`)
	require.NoError(t, err)
	var want bytes.Buffer
	w := csv.NewWriter(&want)
	w.UseCRLF = true
	require.NoError(t, w.Write(samplesHeader()))
	for _, run := range []string{"tiny-1", "wide-1", "wide-2"} {
		trials, err := s.cfg.Store.Trials(t.Context(), run)
		require.NoError(t, err)
		for _, trial := range trials {
			rows, err := s.cfg.Store.SamplesOfTrial(t.Context(), run, int(trial.Trial))
			require.NoError(t, err)
			for i := range rows {
				x := &rows[i]
				row := []string{run, strconv.Itoa(int(trial.Trial)), strconv.Itoa(int(trial.Iteration)), trial.Treatment, strconv.Itoa(int(x.Attempt)), strconv.Itoa(int(x.Flow)), x.Side,
					x.At.UTC().Format(time.RFC3339Nano)}
				for k := range contract.Metrics {
					f := &contract.Metrics[k]
					cell := ""
					if v := f.Float(&x.Metrics); v != nil {
						cell = strconv.FormatFloat(*v, 'g', -1, 64)
					} else if n := f.Whole(&x.Metrics); n != nil {
						cell = strconv.FormatInt(*n, 10)
					}
					if f.Name == contract.ElapsedNS {
						cell = strconv.FormatFloat(time.Duration(x.Metrics.ElapsedNS).Seconds(), 'f', 6, 64)
					}
					row = append(row, cell)
				}
				require.NoError(t, w.Write(wording.Cells(append(row, string(x.More)))))
			}
		}
	}
	w.Flush()
	head, got := exported(t, s, &linktrialv1.ResultsRequest{RunId: "tiny", MoreIds: []string{"wide", "wide-2"}, Format: samplesCSV})
	require.Equal(t, want.String(), got)
	require.Equal(t, []string{"tiny-1", "wide-1", "wide-2"}, head.RunIds)
	require.Equal(t, "tiny, wide", head.CampaignId)
	require.Equal(t, "samples.csv", head.FileName)
	require.Equal(t, "text/csv; charset=utf-8; header=present", head.MediaType)
	require.Contains(t, got, `,"'=a ""b"", c",`)

	head, columnar := exported(t, s, &linktrialv1.ResultsRequest{RunId: "tiny", MoreIds: []string{"wide", "wide-2"}, Format: samplesParquet})
	require.Equal(t, "samples.parquet", head.FileName)
	require.Equal(t, "application/vnd.apache.parquet", head.MediaType)
	reporttest.SameTable(t, got, []byte(columnar))
}

// Files of rows are the whole ones less the rows of treatments that are left out, and a
// name that no run has is refused.
func TestFilesWithoutTreatments(t *testing.T) {
	s, _ := filled(t, nil, synthetic.Shape{ID: "wide", Runs: 1, Iterations: 3, Treatments: 3, Samples: 4})
	read := func(text string) [][]string {
		all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		require.NoError(t, err)
		return all
	}
	for _, format := range []string{samplesCSV, channelsCSV, readingsCSV, "trials-csv"} {
		_, whole := exported(t, s, &linktrialv1.ResultsRequest{RunId: "wide", Format: format})
		_, less := exported(t, s, &linktrialv1.ResultsRequest{RunId: "wide", Format: format, LeaveOut: []string{"treatment-2"}})
		want := read(whole)
		k := slices.Index(want[0], "trial")
		want = slices.DeleteFunc(want, func(r []string) bool {
			n, err := strconv.Atoi(r[k])
			return err == nil && n%3 == 1
		})
		if format == samplesCSV {
			require.Greater(t, len(want), 3*2*4)
		}
		require.Equal(t, want, read(less), format)
		if columnar := strings.TrimSuffix(format, "-csv") + "-parquet"; render.Find(columnar) != nil {
			_, file := exported(t, s, &linktrialv1.ResultsRequest{RunId: "wide", Format: columnar, LeaveOut: []string{"treatment-2"}})
			reporttest.SameTable(t, less, []byte(file))
		}
		for _, wrong := range []string{"treatment-9", "Treatment 2"} {
			err := s.Export(t.Context(), &linktrialv1.ResultsRequest{RunId: "wide", Format: format, LeaveOut: []string{wrong}}, func(*linktrialv1.ResultsResponse) error { return nil })
			require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), format)
			require.ErrorContains(t, err, "no run has a treatment \""+wrong+"\"")
		}
	}
	err := s.Export(t.Context(), &linktrialv1.ResultsRequest{RunId: "wide", Format: "svg:2"}, func(*linktrialv1.ResultsResponse) error { return nil })
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	require.ErrorContains(t, err, "there is no such part: svg:2: the figure has 1 part")
}

// What is in memory does not grow with the file, whose values are about 20 MB. The bound is
// several times what rows need; Parquet has a page of each column, and what compresses them.
func TestRowsAreNotKept(t *testing.T) {
	s, _ := filled(t, nil, synthetic.Shape{ID: "deep", Runs: 1, Iterations: 10, Treatments: 4, Samples: 2500})
	const ofRows, ofColumns = 5 << 20, 14 << 20
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, format := range []string{samplesCSV, samplesParquet, channelsCSV} {
		bound := uint64(ofRows)
		if format == samplesParquet {
			bound = ofColumns
		}
		before, most, size, done := live(), uint64(0), 0, 0.0
		require.NoError(t, s.Export(t.Context(), &linktrialv1.ResultsRequest{RunId: "deep", Format: format}, func(part *linktrialv1.ResultsResponse) error {
			size += len(part.Content)
			most = max(most, live())
			require.GreaterOrEqual(t, part.Done, done)
			done = part.Done
			return nil
		}))
		t.Logf("%s: %d bytes, %d more in memory", format, size, most-min(most, before))
		if format == samplesCSV {
			require.Greater(t, size, 2*ofRows)
		}
		require.Less(t, most, before+bound)
		require.Equal(t, 1.0, done)
	}
}

// A caller that goes ends the work for it, at the database too.
func TestCallerGoes(t *testing.T) {
	s, conn := filled(t, nil, synthetic.Shape{ID: "deep", Runs: 1, Iterations: 5, Treatments: 4, Samples: 1000})
	ctx, cancel := context.WithCancel(t.Context())
	parts := 0
	err := s.Export(ctx, &linktrialv1.ResultsRequest{RunId: "deep", Format: samplesCSV}, func(*linktrialv1.ResultsResponse) error {
		if parts++; parts == 2 {
			cancel()
		}
		return ctx.Err()
	})
	require.Error(t, err)
	require.Equal(t, 2, parts)
	require.Empty(t, s.rowExports)
	require.Eventually(t, func() bool {
		var n int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' AND query LIKE '%FROM samples WHERE run_id = $1 AND trial BETWEEN%'`).Scan(&n)
		return err == nil && n == 0
	}, 20*time.Second, 50*time.Millisecond)
}

// A caller that takes nothing holds no connection to the database for longer than stated.
func TestCallerStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ended := make(chan time.Duration, 1)
		held := make(chan struct{})
		result := make(chan error)
		go func() {
			result <- pass(t.Context(), nil, func(_ context.Context, out *output) error {
				_, err := out.Write(make([]byte, 10*chunkSize))
				ended <- time.Since(began)
				return err
			}, func(chunk) error {
				<-held
				return nil
			})
		}()
		require.Equal(t, stalledAfter, <-ended)
		close(held)
		require.ErrorIs(t, <-result, errStalled)
	})
}

func TestOrchestratorStops(t *testing.T) {
	stopping := make(chan struct{})
	close(stopping)
	err := pass(t.Context(), stopping, func(ctx context.Context, _ *output) error {
		<-ctx.Done()
		return ctx.Err()
	}, func(chunk) error { return nil })
	require.ErrorIs(t, err, nodes.ErrStopping)
}

// Browsers save the same bytes as the API has, and take no half file for a whole one.
func TestDownload(t *testing.T) {
	stopping := make(chan struct{})
	s, _ := filled(t, stopping, synthetic.Shape{ID: "deep", Runs: 2, Iterations: 10, Treatments: 4, Samples: 1500})
	web := httptest.NewServer(http.HandlerFunc(s.Download))
	defer web.Close()
	get := func(query string, read func(*http.Response)) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+DownloadPath+"?"+query, http.NoBody)
		require.NoError(t, err)
		res, err := web.Client().Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		read(res)
	}
	for _, format := range []string{"csv", channelsCSV} {
		get("id=deep-2&format="+format+"&stem=deep-radio-1", func(res *http.Response) {
			got, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			head, want := exported(t, s, &linktrialv1.ResultsRequest{RunId: "deep-2", Format: format})
			require.Equal(t, want, string(got))
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.Equal(t, `attachment; filename="deep-radio-1-`+head.FileName+`"`, res.Header.Get("Content-Disposition"))
			require.Equal(t, head.MediaType, res.Header.Get("Content-Type"))
		})
	}
	for query, want := range map[string]int{"id=nosuch&format=csv": 404, "id=deep&format=cvs": 400, "id=deep&format=csv&stem=../x": 400, "id=%00": 400, "id=deep&format=csv&reference=x": 400} {
		get(query, func(res *http.Response) {
			text, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Equal(t, want, res.StatusCode, "%s: %s", query, text)
			require.NotContains(t, string(text), "invalid_argument")
			require.Empty(t, res.Header.Get("Content-Disposition"))
		})
	}
	get("id=deep&format=samples-csv", func(res *http.Response) {
		require.Equal(t, http.StatusOK, res.StatusCode)
		_, err := io.ReadFull(res.Body, make([]byte, 1000))
		require.NoError(t, err)
		close(stopping)
		_, err = io.Copy(io.Discard, res.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

func TestUnknownFormat(t *testing.T) {
	err := New(Config{}).Export(t.Context(), &linktrialv1.ResultsRequest{Format: "sample-csv"}, nil)
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	require.ErrorContains(t, err, "samples-csv")
}

// BenchmarkSamples makes samples.csv of 200 000 samples.
func BenchmarkSamples(b *testing.B) {
	s, _ := filled(b, nil, synthetic.Shape{ID: "deep", Runs: 1, Iterations: 100, Treatments: 4, Samples: 500})
	for b.Loop() {
		size := 0
		require.NoError(b, s.Export(b.Context(), &linktrialv1.ResultsRequest{RunId: "deep", Format: samplesCSV}, func(part *linktrialv1.ResultsResponse) error {
			size += len(part.Content)
			return nil
		}))
		b.SetBytes(int64(size))
	}
}
