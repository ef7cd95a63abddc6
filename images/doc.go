// Package images tests the container images and the compose files that use them.
package images
