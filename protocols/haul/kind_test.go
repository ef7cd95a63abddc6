package haul_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "carries transfers over sockets")
