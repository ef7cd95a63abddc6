package server

import "net/http"

// Handler returns what answers requests, for tests that make no connections.
func (s *Server) Handler() http.Handler { return s.http.Handler }
