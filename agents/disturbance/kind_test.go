package disturbance

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "changes interfaces and packet filters, and waits for the kernel to say so")
