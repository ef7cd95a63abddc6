package server

import (
	"log/slog"
	"net/http"

	"linktrial/web"
)

// handbook returns what answers below [web.HandbookPath]: the documents, or why this program
// has none.
func handbook(log *slog.Logger) http.Handler {
	documents, err := web.Handbook()
	if err == nil {
		return documents
	}
	log.Warn("no handbook", "reason", err)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Linktrial: "+err.Error(), http.StatusNotFound)
	})
}
