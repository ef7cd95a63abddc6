package document

// Document is a report before it is rendered. All texts are plain: a renderer escapes them.
type Document struct {
	Title    string
	Subtitle string // of which campaigns it is
	// Author is who wrote the report, as the director says; empty: she does not.
	Author string
	// Claim says whose words title and author are; empty: Linktrial's.
	Claim string
	// Running is a line on every page: plan, campaign, and where it was measured.
	Running string
	// Partial is a sentence on every page of a report of what has not ended; empty: it has.
	Partial  string
	Sections []Section
}

// Section is a chapter, or a part of one.
type Section struct {
	ID     string // unique in the document: small letters, digits and hyphens
	Title  string
	Level  int    // 1: a chapter, 2: a part of the one before
	Number string // "3.2"; made by [Of]
	Blocks []Block
}

// Block is one of its fields.
type Block struct {
	Paragraph string
	List      []string
	Facts     []Fact
	Table     *Table
	Figure    *Figure
	Words     *Words
}

// Words are a director's own, set apart from what was computed.
type Words struct {
	Head       string // of which campaign; empty: of the report's
	Paragraphs []string
	Source     string // whose words they are, and that they are not computed
}

// Fact is a line of a list of names and values.
type Fact struct {
	Name, Value string
	Mono        bool // the value is a digest or an identity
}

// Table is numbered through the document.
type Table struct {
	Number  int // made by [Of]
	Caption string
	// Heads are the rows of heads above the columns; the spans of each add up to the columns.
	Heads   [][]Head
	Columns []Column
	Rows    []Row
	Notes   []string // below it
}

// Head is a cell of a table's head.
type Head struct {
	Text string
	Span int // columns; 0: one
}

// Column is how the cells of a column are set.
type Column struct {
	Number bool // right-aligned, with digits of one width
	Mono   bool
}

// Row has a cell a column.
type Row struct {
	Cells []string
	Group bool // a group of rows begins with it: a line above
}

// Figure is a drawing, numbered through the document.
type Figure struct {
	Number  int // made by [Of]
	Caption string
	Alt     string // what can be seen in it, for people who do not see it
	SVG     []byte
}

func paragraph(text string) Block { return Block{Paragraph: text} }
func list(items ...string) Block  { return Block{List: items} }
func facts(of ...Fact) Block      { return Block{Facts: of} }
func tableBlock(t *Table) Block   { return Block{Table: t} }
func figureBlock(f *Figure) Block { return Block{Figure: f} }
