package trial

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
)

// fileServer answers every request for results with a file in pieces, and then with err.
type fileServer struct {
	linktrialv1connect.UnimplementedOperatorServiceHandler
	pieces int
	err    error
	ended  chan error // gets how the caller's context ended; nil: nobody asks
	fails  int        // err ends so many answers, and none after them; 0: all
	asked  int
	parts  int32 // that the file says it has
}

var errHang = errors.New("goes on until the caller goes")

func (s *fileServer) Results(ctx context.Context, _ *connect.Request[linktrialv1.ResultsRequest], stream *connect.ServerStream[linktrialv1.ResultsResponse]) error {
	if s.ended != nil {
		defer func() { s.ended <- ctx.Err() }()
	}
	for _, m := range []*linktrialv1.ResultsResponse{{Done: 0.1}, {CampaignId: "camp", FileName: "../samples.csv", MediaType: "text/csv", Parts: s.parts}} {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	for i := range s.pieces {
		if err := stream.Send(&linktrialv1.ResultsResponse{Content: bytes.Repeat([]byte{'x'}, 1000), Done: float64(i) / float64(s.pieces)}); err != nil {
			return err
		}
	}
	if errors.Is(s.err, errHang) {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.asked++; s.fails > 0 && s.asked > s.fails {
		return nil
	}
	return s.err
}

func (s *fileServer) client(t *testing.T) linktrialv1connect.OperatorServiceClient {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(s))
	web := httptest.NewUnstartedServer(mux)
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(web.Close)
	return linktrialv1connect.NewOperatorServiceClient(web.Client(), web.URL, connect.WithGRPC())
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range all {
		out = append(out, e.Name())
	}
	return out
}

// A file has its name once it is whole, and stays in the folder.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	files, err := Export(t.Context(), "", (&fileServer{pieces: 7}).client(t), &linktrialv1.ResultsRequest{}, dir, []string{"samples-csv"})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "samples.csv")}, files)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{'x'}, 7000), content)
	require.Equal(t, []string{"samples.csv"}, names(t, dir))
}

// Who prints a figure of several parts learns that there are more, beside the file and not in it.
func TestPrintNamesParts(t *testing.T) {
	const hint = "This is part 1 of 3. --out FOLDER writes all parts; --format svg:2 prints part 2.\n"
	for format, want := range map[string]string{"svg": hint, "svg:2": ""} {
		var out, hints bytes.Buffer
		q := &linktrialv1.ResultsRequest{Format: format}
		require.NoError(t, printResults(t.Context(), "", (&fileServer{pieces: 2, parts: 3}).client(t), q, &out, &hints))
		require.Equal(t, 2000, out.Len())
		require.Equal(t, want, hints.String(), format)
	}
	var hints bytes.Buffer
	require.NoError(t, printResults(t.Context(), "", (&fileServer{parts: 1}).client(t), &linktrialv1.ResultsRequest{Format: "csv"}, &bytes.Buffer{}, &hints))
	require.Empty(t, hints.String())
}

func TestExportFails(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "samples.csv")
	require.NoError(t, os.WriteFile(old, []byte("old"), 0o600))
	broken := &fileServer{pieces: 7, err: connect.NewError(connect.CodeUnavailable, errors.New("the orchestrator is stopping"))}
	files, err := Export(t.Context(), "", broken.client(t), &linktrialv1.ResultsRequest{}, dir, []string{"samples-csv"})
	require.ErrorContains(t, err, "the orchestrator is stopping")
	require.Empty(t, files)
	content, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "old", string(content))
	require.Equal(t, []string{"samples.csv"}, names(t, dir))
}

// A command that follows a campaign asks for its table and files again when the database
// went away in the middle of them, and has each of them once.
func TestExportWaits(t *testing.T) {
	away := connect.NewError(connect.CodeUnavailable, errors.New("the database does not answer"))
	var said []string
	ctx := client.Waiting(t.Context(), client.NewOutage("http://o", func(line string) { said = append(said, line) }))
	var table bytes.Buffer
	require.NoError(t, PrintTable(ctx, "", (&fileServer{pieces: 3, err: away, fails: 2}).client(t), "camp", &table))
	require.Equal(t, 3000, table.Len())
	require.Contains(t, said[0], "the database does not answer; this command continues when it answers again")
	require.Contains(t, said[len(said)-1], "the orchestrator is back after")

	dir := t.TempDir()
	files, err := Export(ctx, "", (&fileServer{pieces: 3, err: away, fails: 1}).client(t), &linktrialv1.ResultsRequest{}, dir, []string{"samples-csv"})
	require.NoError(t, err)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Len(t, content, 3000)
	require.Equal(t, []string{"samples.csv"}, names(t, dir))
}

// Who ends the command ends the work at the orchestrator, and nothing is left of the file.
func TestExportIsEnded(t *testing.T) {
	dir := t.TempDir()
	s := &fileServer{pieces: 7, err: errHang, ended: make(chan error, 2)}
	in, err := openResults(t.Context(), s.client(t), &linktrialv1.ResultsRequest{}, nil)
	require.NoError(t, err)
	_, err = in.Read(make([]byte, 10))
	require.NoError(t, err)
	in.close()
	require.ErrorIs(t, <-s.ended, context.Canceled)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error)
	go func() {
		_, err := Export(ctx, "", s.client(t), &linktrialv1.ResultsRequest{}, dir, []string{"samples-csv"})
		result <- err
	}()
	require.Eventually(t, func() bool { return len(names(t, dir)) == 1 }, 20*time.Second, 10*time.Millisecond)
	cancel()
	require.Error(t, <-result)
	require.Empty(t, names(t, dir))
}

// What is not text is not written to a terminal.
func TestFormatsThatTerminalsShow(t *testing.T) {
	for _, text := range []string{"table", "csv", "svg", "nothing-that-there-is"} {
		require.NoError(t, printable(text), text)
	}
	require.EqualError(t, printable("trials-parquet"), "--format trials-parquet is not text: --out FOLDER writes it as trials.parquet")
}
