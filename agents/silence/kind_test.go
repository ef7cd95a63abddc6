package silence

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "listens to packets on interfaces")
