// Command supply says what the programs of Linktrial are made of, and checks it.
//
//	supply licences          holds every dependency against the allowed licences, and writes licences/
//	supply licences -check   the same, and compares licences/ instead
//	supply sbom -out DIR ARTEFACT…
//	                         writes a bill of materials (CycloneDX, JSON) for each program, container
//	                         image (image:NAME) and install bundle (FILE.tar.gz), and for the typesetter (bin/typst)
//	supply audit             prints a table of what could be checked of the dependencies, and what not
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("expected licences, sbom or audit")
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	f := flag.NewFlagSet(args[0], flag.ExitOnError)
	switch args[0] {
	case "licences":
		check := f.Bool("check", false, "compare "+listFile+" and "+textsFile+" with what they would be, and write nothing")
		_ = f.Parse(args[1:]) // it exits
		return licences(ctx, root, *check)
	case "sbom":
		out := f.String("out", filepath.Join(root, "build", "sbom"), "folder for the bills of materials")
		version := f.String("version", "unknown", "version of Linktrial")
		_ = f.Parse(args[1:])
		return writeBOMs(ctx, root, *out, *version, f.Args())
	case "audit":
		programs := f.String("programs", filepath.Join(root, "bin"), "folder with linktrial, built")
		_ = f.Parse(args[1:])
		return audit(ctx, root, *programs)
	}
	return fmt.Errorf("%q, expected licences, sbom or audit", args[0])
}
