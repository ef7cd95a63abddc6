// Package bundle packs what machines without internet need in order to become
// nodes: the program, the drivers, Debian packages with all they depend on,
// container images, playbooks and radio profiles, in one archive with a manifest
// and checksums: an install bundle; and signs it, as minisign(1) does. In: files, names of
// packages and images, keys. Out: the archive, its signature, and the result of its check.
//
// The archive is a tar with gzip, which a bare Debian unpacks:
//
//	linktrial-bundle/README.txt
//	linktrial-bundle/manifest.json   what is in it, and of which version
//	linktrial-bundle/SHA256SUMS      of every other file; the last entry
//	linktrial-bundle/bin/linktrial
//	linktrial-bundle/bin/drivers/    a folder for each driver
//	linktrial-bundle/debian/         a flat repository: *.deb, Packages, InRelease and the key that signed it
//	linktrial-bundle/images/         as docker save writes them
//	linktrial-bundle/playbooks/
//	linktrial-bundle/radio-profiles/
//	linktrial-bundle/licences/       of what others wrote
package bundle
