package bpf

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "carries transfers with congestion controls in the kernel")
