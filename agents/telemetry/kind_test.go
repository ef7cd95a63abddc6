package telemetry

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "polls radios over sockets at intervals")

var _ = testkind.Waits("for sources that do not answer")
