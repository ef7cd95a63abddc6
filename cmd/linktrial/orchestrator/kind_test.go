package orchestrator

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts an orchestrator as a process, and signals it")
