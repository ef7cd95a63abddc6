package arrival

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "holds the times that the kernel gives to datagrams against the clock")
