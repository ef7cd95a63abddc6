package telemetrysource

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "reads real services over sockets")

var _ = testkind.Waits("for sources that do not answer")
