package session

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "keeps connections to an orchestrator, and cuts them")
