package document

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed report.html.tmpl
var page string

//go:embed report.css
var style string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"style":   func() template.CSS { return template.CSS(style) },
	"drawing": func(f *Figure) template.HTML { return template.HTML(f.SVG) }, // of orchestrator/report/figure, which escapes texts
}).Parse(page))

// HTML writes a document as one file that needs no network and can be printed.
func HTML(w io.Writer, d *Document) error { return pageTemplate.Execute(w, d) }
