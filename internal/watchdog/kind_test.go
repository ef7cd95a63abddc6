package watchdog

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "waits for a main loop that makes no progress")
