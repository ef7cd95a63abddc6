package radiomark

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "network namespaces of its own")
