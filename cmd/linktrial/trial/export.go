package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/term"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/atomicfile"
)

// showAfter is how long an export may take before its progress is shown.
const showAfter = 2 * time.Second

// arriving is a file of results as it arrives: a reader that holds a piece of it.
type arriving struct {
	cancel context.CancelFunc // of the call: to close a stream is to read it to its end
	stream *connect.ServerStreamForClient[linktrialv1.ResultsResponse]
	head   *linktrialv1.ResultsResponse // all but the content
	rest   []byte
	done   func(share float64)
}

// openResults blocks until the orchestrator has accepted a request. Whoever reads to the
// end has the whole file; done, which can be nil, hears which share of it is there. The
// reader must be closed, which ends the work at the orchestrator.
func openResults(ctx context.Context, c linktrialv1connect.OperatorServiceClient, q *linktrialv1.ResultsRequest, done func(share float64)) (*arriving, error) {
	if done == nil {
		done = func(float64) {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.Results(ctx, connect.NewRequest(q))
	if err != nil {
		cancel()
		return nil, err
	}
	a := &arriving{cancel: cancel, stream: stream, done: done}
	for stream.Receive() {
		if m := stream.Msg(); m.FileName != "" {
			a.head, a.rest = m, m.Content
			return a, nil
		}
		done(stream.Msg().Done)
	}
	err = stream.Err()
	if err == nil {
		err = errors.New("the orchestrator answered without a file")
	}
	a.close()
	return nil, err
}

func (a *arriving) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if !a.stream.Receive() {
			if err := a.stream.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		a.rest = a.stream.Msg().Content
		a.done(a.stream.Msg().Done)
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

func (a *arriving) close() {
	a.cancel()
	_ = a.stream.Close() // its error is that it was cancelled
}

// PrintTable writes the table of a run or campaign for people.
func PrintTable(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, id string, w io.Writer) error {
	var table strings.Builder
	err := client.Repeat(ctx, func() error {
		table.Reset()
		_, err := fetch(ctx, c, &linktrialv1.ResultsRequest{RunId: id, Format: "table"}, &table)
		return err
	})
	if err != nil {
		return client.Error(base, err)
	}
	_, err = io.WriteString(w, terminal.Printable(table.String()))
	return err
}

// printResults writes results in one format as they were recorded, and a hint to where a
// figure has parts of which only the first was written.
func printResults(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, q *linktrialv1.ResultsRequest, w, hints io.Writer) error {
	parts, err := fetch(ctx, c, q, w)
	if err != nil {
		return client.Error(base, err)
	}
	if parts > 1 && !strings.Contains(q.Format, ":") {
		fmt.Fprintf(hints, "This is part 1 of %d. --out FOLDER writes all parts; --format %s:2 prints part 2.\n", parts, q.Format)
	}
	return nil
}

// fetch writes results in one format, and returns of how many parts they are one. Progress
// is shown where it is not between the lines of the file.
func fetch(ctx context.Context, c linktrialv1connect.OperatorServiceClient, q *linktrialv1.ResultsRequest, w io.Writer) (parts int, err error) {
	done := func(float64) {}
	if f, ok := w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		stages := terminal.NewLateStages(os.Stderr, showAfter)
		defer stages.Finish()
		done = func(share float64) { stages.Stage(q.Format, share) }
		done(0)
	}
	in, err := openResults(ctx, c, q, done)
	if err != nil {
		return 0, err
	}
	defer in.close()
	_, err = io.Copy(w, in)
	return int(in.head.Parts), err
}

// Export writes results into a folder and returns the names of the files. Without
// formats it writes all that there are of the results. A file has its name once it is whole.
func Export(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, q *linktrialv1.ResultsRequest, dir string, formats []string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	mayBeMissing := map[string]bool{}
	if formats == nil {
		there, err := formatsOf(ctx, base, q)
		if err != nil {
			return nil, err
		}
		for _, f := range there {
			formats, mayBeMissing[f.Name] = append(formats, f.Name), f.MayBeMissing
		}
	}
	x := &exporter{client: c, stages: terminal.NewLateStages(os.Stderr, showAfter), path: func(head *linktrialv1.ResultsResponse) string {
		return filepath.Join(dir, filepath.Base(head.FileName))
	}}
	defer x.stages.Finish()
	var files []string
	for _, format := range formats {
		paths, err := x.all(ctx, q, format)
		files = append(files, paths...)
		if err != nil && (!mayBeMissing[format] || connect.CodeOf(err) != connect.CodeNotFound) {
			return files, client.Error(base, err)
		}
	}
	return files, nil
}

// exportAs writes results in one format to the path that is made of what comes before the
// content, and returns it. The file has its name once it is whole.
func exportAs(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, q *linktrialv1.ResultsRequest, path func(head *linktrialv1.ResultsResponse) string) (string, error) {
	x := &exporter{client: c, stages: terminal.NewLateStages(os.Stderr, showAfter), path: path}
	defer x.stages.Finish()
	var at string
	err := client.Repeat(ctx, func() (err error) {
		at, _, err = x.export(ctx, q)
		return err
	})
	if err != nil {
		return "", client.Error(base, err)
	}
	return at, nil
}

// formatsOf are the formats that there are of results, but for those that are for a screen
// and reports, which have a command of their own.
func formatsOf(ctx context.Context, base string, q *linktrialv1.ResultsRequest) ([]*linktrialv1.Format, error) {
	c := linktrialv1connect.NewResultServiceClient(client.HTTP(), base, client.Options())
	var res *connect.Response[linktrialv1.ListFormatsResponse]
	err := client.Repeat(ctx, func() (err error) {
		res, err = c.ListFormats(ctx, connect.NewRequest(&linktrialv1.ListFormatsRequest{Ids: append([]string{q.RunId}, q.MoreIds...)}))
		return err
	})
	if err != nil {
		return nil, client.Error(base, err)
	}
	return slices.DeleteFunc(res.Msg.Formats, func(f *linktrialv1.Format) bool { return f.OnScreen || f.Document }), nil
}

type exporter struct {
	client linktrialv1connect.OperatorServiceClient
	path   func(head *linktrialv1.ResultsResponse) string // of a file, by what comes before its content
	stages *terminal.Stages
}

// all writes all parts of a figure, or the one that the format names, and returns their paths.
func (x *exporter) all(ctx context.Context, q *linktrialv1.ResultsRequest, format string) (paths []string, err error) {
	for part := 1; ; part++ {
		one := proto.CloneOf(q)
		one.Format = format
		if part > 1 {
			one.Format = fmt.Sprintf("%s:%d", format, part)
		}
		var path string
		var parts int
		err := client.Repeat(ctx, func() (err error) {
			path, parts, err = x.export(ctx, one)
			return err
		})
		if err != nil {
			return paths, err
		}
		paths = append(paths, path)
		if part >= parts || strings.Contains(format, ":") {
			return paths, nil
		}
	}
}

// export writes one file, and returns its path and of how many parts it is one.
func (x *exporter) export(ctx context.Context, q *linktrialv1.ResultsRequest) (path string, parts int, err error) {
	x.stages.Stage(q.Format, 0)
	in, err := openResults(ctx, x.client, q, func(share float64) { x.stages.Stage(q.Format, share) })
	if err != nil {
		return "", 0, err
	}
	defer in.close()
	path = x.path(in.head)
	file, err := atomicfile.Create(path, 0o644)
	if err != nil {
		return "", 0, err
	}
	defer file.Discard()
	if _, err := io.Copy(file, in); err != nil {
		return "", 0, err
	}
	return path, int(in.head.Parts), file.Commit()
}
