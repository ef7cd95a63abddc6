package telemetry

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "asks emulated radios over sockets")
