package netns

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts labs in network namespaces, and kills them")
