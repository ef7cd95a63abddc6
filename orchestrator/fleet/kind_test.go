package fleet_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "waits for nodes that poll")
