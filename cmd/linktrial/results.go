package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
)

// exportFormats is what a rehearsal leaves in its folder.
var exportFormats = []string{"csv", "trials-csv", "samples-csv", "json", "markdown", "latex", "svg"}

func newResults(s *settings) *cobra.Command {
	var format, out, against string
	cmd := &cobra.Command{
		Use:   "results [RUN|CAMPAIGN]",
		Short: "Print or export results (default: of the newest campaign)",
		Long: `Print or export the results of a run or of a campaign; a prefix of its identity
will do. Where no orchestrator runs, one is started on the data folder for as
long as the command lasts.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if against != "" {
				if against != "published" {
					return fmt.Errorf("--against %q, there is: published", against)
				}
				// The table beside published figures has formats of its own.
				format = map[string]string{"table": "against", "csv": "against-csv", "json": "against-json", "markdown": "against-markdown"}[format]
				if format == "" {
					return errors.New("--against has the formats table, csv, json and markdown")
				}
			}
			o, err := openOrchestrator(ctx, s, cmd.Flags().Changed("orchestrator"))
			if err != nil {
				return err
			}
			defer o.close()
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			if out == "" {
				return printResults(ctx, o.base, o.client, id, format, os.Stdout)
			}
			formats := exportFormats
			if cmd.Flags().Changed("format") {
				formats = []string{format}
			}
			files, err := exportTo(ctx, o.base, o.client, id, out, formats)
			if err != nil {
				return err
			}
			fmt.Println(strings.Join(files, "\n"))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", "table", "table, csv, trials-csv, samples-csv, json, markdown, latex, svg, sweep, sweep-svg or sequence-svg")
	f.StringVar(&against, "against", "", "published: the paper's figures beside these, and what deviates")
	f.StringVar(&out, "out", "", "write files into this folder instead of printing: all formats, or the one of --format")
	return cmd
}

// exportTo writes results into a folder and returns the files' names.
func exportTo(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, id, dir string, formats []string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var files []string
	for _, format := range formats {
		res, err := c.Results(ctx, connect.NewRequest(&linktrialv1.ResultsRequest{RunId: id, Format: format}))
		if err != nil {
			return files, rpcError(base, err)
		}
		path := filepath.Join(dir, filepath.Base(res.Msg.FileName))
		if err := os.WriteFile(path+".new", res.Msg.Content, 0o644); err != nil {
			return files, err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return files, err
		}
		files = append(files, path)
	}
	return files, nil
}
