package typeset_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "runs Typst as a process, and cancels it")
