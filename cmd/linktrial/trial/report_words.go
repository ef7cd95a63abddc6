package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/inputfile"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wordsfile"
)

// wordsFlags are what is to be done with the words of a report.
type wordsFlags struct {
	title, author, summary, file, by string
	remarks                          []string
	show, remove                     bool
}

func newReportWords(s *setting.Settings) *cobra.Command {
	var w wordsFlags
	cmd := &cobra.Command{
		Use:   "words CAMPAIGN",
		Short: "Show or change your own words in the report of a campaign: title, author, summary, remarks",
		Long: `Words shows, or changes, what a director adds to the report of a campaign in her own
words: title, author, a summary, and a remark at the end of a chapter. They are kept with
the campaign, and its reports show them as hers, apart from what was computed. CAMPAIGN
can be the beginning of its identity.

The flags of texts change those, and leave the others; an empty text takes one away. A
file has all of them: what it does not have is taken away. --show prints them in the form
of such a file, so that it can be edited and given back. Chapters are ` + strings.Join(report.ChapterKeys(), ", ") + `.`,
		Example: `  linktrial report words m4t7xk2p --title "Two protocols on the hill" --author "A. Meyer"
  linktrial report words m4t7xk2p --remark "results=At K Lot a lorry was between the antennas."
  linktrial report words m4t7xk2p --show > words.yaml
  linktrial report words m4t7xk2p --file words.yaml
  linktrial report words m4t7xk2p --remove`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := w.read(cmd)
			if err != nil {
				return err
			}
			o, err := openOrchestrator(cmd.Context(), s, cmd.Flags().Changed("orchestrator"))
			if err != nil {
				return err
			}
			defer o.close()
			c := linktrialv1connect.NewReportServiceClient(client.HTTP(), o.base, connect.WithGRPC())
			out, err := w.do(cmd.Context(), c, args[0], given)
			if err != nil {
				return client.Error(o.base, err)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), out)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&w.title, "title", "", "title of the report")
	f.StringVar(&w.author, "author", "", "who wrote the words")
	f.StringVar(&w.summary, "summary", "", "the first chapter; empty lines divide paragraphs")
	f.StringArrayVar(&w.remarks, "remark", nil, "CHAPTER=TEXT, a remark at the end of a chapter; can be given several times")
	f.StringVar(&w.file, "file", "", "file with all words (YAML, docs/report.md)")
	f.BoolVar(&w.show, "show", false, "print the words as such a file (default without other flags)")
	f.BoolVar(&w.remove, "remove", false, "remove the words; earlier versions stay stored")
	f.StringVar(&w.by, "by", "", "who saves them, which is recorded unless you are logged in (default: the user of this machine)")
	cmd.MarkFlagsMutuallyExclusive("show", "remove", "file")
	for _, text := range []string{"title", "author", "summary", "remark"} {
		for _, whole := range []string{"show", "remove", "file"} {
			cmd.MarkFlagsMutuallyExclusive(text, whole)
		}
	}
	return cmd
}

// givenWords makes of the words that there are those that are to be saved; nil: they are shown.
type givenWords func(now *linktrialv1.SetWordsRequest)

// read checks what was given before an orchestrator is asked.
func (w *wordsFlags) read(cmd *cobra.Command) (givenWords, error) {
	switch {
	case w.remove:
		return func(now *linktrialv1.SetWordsRequest) {
			now.Title, now.Author, now.Summary, now.Remarks = "", "", "", nil
		}, nil
	case cmd.Flags().Changed("file"):
		return w.readFile()
	}
	remarks, err := remarksOf(w.remarks)
	if err != nil {
		return nil, err
	}
	changed := func(name string) bool { return cmd.Flags().Changed(name) }
	if !changed("title") && !changed("author") && !changed("summary") && len(remarks) == 0 {
		return nil, nil
	}
	return func(now *linktrialv1.SetWordsRequest) {
		for name, x := range map[string]struct {
			into *string
			text string
		}{"title": {&now.Title, w.title}, "author": {&now.Author, w.author}, "summary": {&now.Summary, w.summary}} {
			if changed(name) {
				*x.into = x.text
			}
		}
		if now.Remarks == nil {
			now.Remarks = map[string]string{}
		}
		maps.Copy(now.Remarks, remarks)
	}, nil
}

func (w *wordsFlags) readFile() (givenWords, error) {
	text, err := inputfile.Read(w.file, yamldoc.MaxText)
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	words, version, err := wordsfile.Read(w.file, text)
	if err != nil {
		return nil, err
	}
	return func(now *linktrialv1.SetWordsRequest) {
		now.Title, now.Author, now.Summary, now.Remarks = words.Title, words.Author, words.Summary, words.Remarks
		if version >= 0 {
			now.Version = int32(version)
		}
	}, nil
}

// remarksOf are remarks by chapter.
func remarksOf(given []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range given {
		chapter, text, ok := strings.Cut(s, "=")
		chapter = strings.TrimSpace(chapter)
		if !ok {
			return nil, fmt.Errorf("--remark %s: expected CHAPTER=TEXT, found no '='", terminal.Printable(s))
		}
		if _, twice := out[chapter]; twice {
			return nil, fmt.Errorf("--remark %s: given twice", terminal.Printable(chapter))
		}
		check := report.Words{Remarks: map[string]string{chapter: text}}
		check.Tidy()
		if check.Remarks == nil { // an empty one takes a remark away, of a chapter that there is
			check.Remarks = map[string]string{chapter: ""}
		}
		if err := check.Check(); err != nil {
			return nil, fmt.Errorf("--remark: %w", err)
		}
		out[chapter] = text
	}
	return out, nil
}

// do shows the words, or saves them; it returns what is printed.
func (w *wordsFlags) do(ctx context.Context, c linktrialv1connect.ReportServiceClient, campaign string, given givenWords) (string, error) {
	res, err := c.GetWords(ctx, connect.NewRequest(&linktrialv1.GetWordsRequest{CampaignId: campaign}))
	if err != nil {
		return "", err
	}
	if given == nil {
		return wordsText(res.Msg)
	}
	now := res.Msg.Words
	next := &linktrialv1.SetWordsRequest{CampaignId: res.Msg.CampaignId, Version: now.GetVersion(), Title: now.GetTitle(), Author: now.GetAuthor(), Summary: now.GetSummary(),
		Remarks: now.GetRemarks(), By: cmp.Or(w.by, client.UserName())}
	given(next)
	saved, err := c.SetWords(ctx, connect.NewRequest(next))
	switch {
	case connect.CodeOf(err) == connect.CodeAborted && w.file != "":
		text := err.Error()
		if refused := (*connect.Error)(nil); errors.As(err, &refused) {
			text = refused.Message()
		}
		return "", connect.NewError(connect.CodeAborted, fmt.Errorf("%s with --show, or take 'version' out of %s to save them nevertheless", text, w.file))
	case err != nil:
		return "", err
	}
	done := "saved"
	if w.remove {
		done = "removed"
	}
	return fmt.Sprintf("The words of campaign %s are %s, version %d. Its report has them: linktrial report %[1]s\n", terminal.Printable(next.CampaignId), done, saved.Msg.Words.GetVersion()), nil
}

// wordsText is words as a file.
func wordsText(m *linktrialv1.GetWordsResponse) (string, error) {
	now := m.Words
	head := []string{"Words for the report of campaign " + m.CampaignId + " (docs/report.md)."}
	switch {
	case now == nil:
		head = append(head, "There are none yet.")
	case now.At != nil:
		by := ""
		if now.By != "" {
			by = " by " + now.By
		}
		head = append(head, fmt.Sprintf("Saved%s %s.", by, terminal.Moment(now.At)))
	}
	if m.Imported {
		head = append(head, "The campaign was imported: they are those of the orchestrator that measured it, and stay as they are.")
	} else {
		head = append(head, fmt.Sprintf("To save them: linktrial report words %s --file FILE", m.CampaignId))
	}
	head = append(head, "Chapters for remarks: "+strings.Join(report.ChapterKeys(), ", "))
	text, err := wordsfile.Write(report.Words{Title: now.GetTitle(), Author: now.GetAuthor(), Summary: now.GetSummary(), Remarks: now.GetRemarks()}, int(now.GetVersion()), head)
	return string(text), err
}
