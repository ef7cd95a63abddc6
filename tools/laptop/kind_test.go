package main

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "installs a package in a bare Debian and starts what is in it")
