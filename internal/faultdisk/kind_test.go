package faultdisk

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "mounts a file system whose disk is slow or full")
