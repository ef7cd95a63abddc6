package link

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "carries packets between network namespaces with delays")
