package path

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "asks whether nodes in network namespaces reach each other")

var _ = testkind.Waits("for answers that firewalls drop")
