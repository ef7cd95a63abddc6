package radioset

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "changes interfaces, and waits for the kernel to say so")
