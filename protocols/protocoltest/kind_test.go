package protocoltest

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "checks drivers as processes, with faults in them")
