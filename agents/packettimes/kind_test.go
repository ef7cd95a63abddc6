package packettimes_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "times packets in the kernel")

var _ = testkind.Waits("for packets that are delayed")
