package mptcp

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "changes addresses and paths in network namespaces")
