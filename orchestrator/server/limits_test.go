package server_test

import (
	"io"
	"net/http"
	"runtime/metrics"
	"strings"
	"testing"

	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/store/storetest"
)

// A request of 100 MB, is refused without being held in memory,
// whatever it asks for.
func TestRequestsOfAnySize(t *testing.T) {
	s := startOn(t, storetest.URL(t))
	t.Cleanup(func() { stop(t, s) })
	const size = 100 << 20
	for _, procedure := range []string{
		linktrialv1connect.OperatorServiceCheckPlanProcedure,
		linktrialv1connect.OperatorServiceStartPlanProcedure,
		linktrialv1connect.LibraryServiceSavePlanProcedure,
		linktrialv1connect.CatalogServiceSaveTopologyProcedure,
		linktrialv1connect.CatalogServiceSaveProfileProcedure,
		linktrialv1connect.AgentServiceDeliverProcedure,
	} {
		for _, kind := range []string{"application/proto", "application/json"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr()+procedure, io.LimitReader(zeros{}, size))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", kind)
			before := allocated()
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatalf("%s: %v", procedure, err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), "resource_exhausted") {
				t.Errorf("%s of %d bytes of %s: %s %s %v", procedure, size, kind, res.Status, body, err)
			}
			if took := allocated() - before; took > size/2 {
				t.Errorf("%s of %d bytes of %s: %d bytes were allocated", procedure, size, kind, took)
			}
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
