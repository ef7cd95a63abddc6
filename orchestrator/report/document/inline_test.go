package document

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/figure"
	"linktrial/orchestrator/report/reporttest"
)

const svgStart = `<svg xmlns="` + svgSpace + `">`

// refusedDrawings are not drawings of results, by why.
var refusedDrawings = map[string]string{
	`there is no drawing in it`:                                                     "\n",
	`not SVG: text outside the drawing`:                                             svgStart + `</svg>more`,
	`not SVG: XML syntax error on line 1: element <svg> closed by </g>`:             svgStart + `</g>`,
	`not SVG: expected one element svg, around all others; found "p"`:               `<p/>`,
	`not SVG: expected one element svg, around all others; found "svg"`:             svgStart + `</svg>` + svgStart + `</svg>`,
	`not a drawing of results: it has an element "script"`:                          svgStart + `<script>alert(1)</script></svg>`,
	`not a drawing of results: it has an element "foreignObject"`:                   svgStart + `<foreignObject/></svg>`,
	`not a drawing of results: it has an element "rect"`:                            svgStart + `<rect xmlns="http://www.w3.org/1999/xhtml"/></svg>`,
	`not a drawing of results: it has an element "svg"`:                             `<svg/>`,
	`not a drawing of results: it has a comment or an instruction`:                  svgStart + `<!-- a --></svg>`,
	`not a drawing of results: its element "g" has an attribute id="a"`:             svgStart + `<g id="a"/></svg>`,
	`not a drawing of results: its element "g" has an attribute onclick="alert(1)"`: svgStart + `<g onclick="alert(1)"/></svg>`,
	`not a drawing of results: its element "rect" has an attribute fill="url(#a)"`:  svgStart + `<rect fill="url(#a)"/></svg>`,
	`not a drawing of results: its element "text" has an attribute y="z"`:           svgStart + `<text xmlns:y="z" y:x="1"/></svg>`,
}

func TestInlinedRefuses(t *testing.T) {
	for want, svg := range refusedDrawings {
		_, err := inlined([]byte(svg))
		require.EqualError(t, err, want, svg)
	}
}

func TestInlinedEscapes(t *testing.T) {
	got, err := inlined([]byte(svgStart + `<title><![CDATA[ ><script> ]]></title><text x="&quot;&gt;">a &amp; b</text><line/></svg>` + "\n"))
	require.NoError(t, err)
	require.Equal(t, svgStart+`<title> &gt;&lt;script&gt; </title><text x="&#34;&gt;">a &amp; b</text><line/></svg>`, string(got.HTML))
}

// All drawings of results can be a part of a page, several of them in one: they have no ids, and refer to none.
func TestDrawingsAreInlined(t *testing.T) {
	draw := map[string]func(*report.Analysis) ([]byte, error){
		"throughput": figure.Throughput, "delivery": figure.Delivery, "distribution": figure.Distribution, "curves": figure.Curves, "delays": figure.Delays,
	}
	for name, ds := range reporttest.Datasets() {
		v := report.Analyse(ds, report.Options{})
		for what, f := range draw {
			svg, err := f(v)
			if err != nil {
				continue // nothing to draw: tests of report/figure have when
			}
			got, err := inlined(svg)
			require.NoError(t, err, "%s of %s", what, name)
			require.Equal(t, strings.Count(string(svg), "<text"), strings.Count(string(got.HTML), "<text"))
		}
	}
}
