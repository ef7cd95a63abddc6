package harness

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "samples transfers at intervals")
