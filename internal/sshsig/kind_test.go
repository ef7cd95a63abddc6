package sshsig

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "has ssh-keygen sign and verify")
