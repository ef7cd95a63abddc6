package client

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "calls a server that is not there yet, or not any more")
