package results

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/rpc/request"
)

// DownloadPath is where browsers save files of results from. They write them to disk as
// they arrive, which a page's own program cannot do everywhere.
const DownloadPath = "/download"

// stemText is what may stand before a file's name.
var stemText = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,98}[a-z0-9])?$`)

// Download is [Service.Export] as a file for a browser. Its query has what a
// ResultsRequest has, and the stem of the file's name. Where a file cannot be finished,
// the connection ends without the end of the file, so that it is not taken for whole.
func (s *Service) Download(w http.ResponseWriter, r *http.Request) {
	m, stem, err := downloadOf(r.URL.Query())
	if err != nil {
		refuse(w, err)
		return
	}
	var head *linktrialv1.ResultsResponse
	begun := false
	out := http.NewResponseController(w)
	err = s.Export(r.Context(), m, func(part *linktrialv1.ResultsResponse) error {
		if head == nil { // nothing is sent yet: the file can still be refused
			if part.FileName != "" {
				head = part
			}
			return nil
		}
		if !begun {
			begun = true
			h := w.Header()
			h.Set("Content-Type", head.MediaType)
			h.Set("Content-Disposition", `attachment; filename="`+stem+head.FileName+`"`)
			h.Set("Cache-Control", "no-store")
		}
		if _, err := w.Write(part.Content); err != nil {
			return err
		}
		return out.Flush()
	})
	switch {
	case err == nil:
	case begun:
		panic(http.ErrAbortHandler)
	default:
		refuse(w, err)
	}
}

func downloadOf(q url.Values) (m *linktrialv1.ResultsRequest, stem string, err error) {
	m = &linktrialv1.ResultsRequest{Format: q.Get("format"), Reference: q.Get("reference"), Axis: q.Get("axis"), Metric: q.Get("metric"), LeaveOut: q["leave-out"]}
	if ids := q["id"]; len(ids) > 0 {
		m.RunId, m.MoreIds = ids[0], ids[1:]
	}
	if stem = q.Get("stem"); stem != "" {
		if !stemText.MatchString(stem) {
			return nil, "", connect.NewError(connect.CodeInvalidArgument, errors.New("stem: expected at most 100 small letters and digits, with hyphens between"))
		}
		stem += "-"
	}
	return m, stem, request.Check(m)
}

// refuse answers with the error's text for people.
func refuse(w http.ResponseWriter, err error) {
	text := err.Error()
	if coded := (*connect.Error)(nil); errors.As(err, &coded) {
		text = coded.Message()
	}
	status := http.StatusInternalServerError
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument:
		status = http.StatusBadRequest
	case connect.CodeNotFound:
		status = http.StatusNotFound
	case connect.CodeUnavailable:
		status = http.StatusServiceUnavailable
	}
	http.Error(w, text, status)
}
