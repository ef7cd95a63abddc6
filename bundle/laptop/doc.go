// Package laptop packs what a laptop without internet needs in order to be an orchestrator
// or a node, for a person to install by hand: a laptop package, as a .deb and as a tar with
// gzip of the same files. In: the built program, drivers, the PostgreSQL of this machine,
// files. Out: two archives, which are the same bytes for the same files and time.
//
// Its files are those of a Debian package. In the tar the folder linktrial-VERSION takes the
// place of /usr, and works wherever it is unpacked:
//
//	/usr/bin/linktrial
//	/usr/lib/linktrial/drivers/                 a folder for each driver
//	/usr/lib/linktrial/postgresql/              a PostgreSQL with its libraries, of orchestrators alone
//	/usr/lib/linktrial/typst/                   the typesetter of reports as PDF, for Python
//	/usr/lib/systemd/system/                    services, neither enabled nor started
//	/usr/share/linktrial/                       plans, radio profiles, topologies, files for Prometheus and Grafana
//	/usr/share/doc/linktrial/                   README.txt, html, licences
//	/usr/share/man/, /usr/share/bash-completion and those of other shells
//
// The package needs nothing that a bare Debian lacks: libc alone, of the version that its
// programs were built with or newer; for reports as PDF, Python 3.9 or newer.
package laptop
