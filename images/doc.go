// Package images has the tests of the container images and of the compose files
// that use them. Imported by nothing; its tests import internal/enginetest.
package images
