package yamlschema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/unit"
)

// Type is the type of a value.
type Type string

// The types.
const (
	TypeText     Type = "text"
	TypeLine     Type = "line" // of text, as labels are
	TypeName     Type = "name" // of the document's own, such as a treatment's
	TypeKnown    Type = "known"
	TypeInteger  Type = "integer"
	TypeNumber   Type = "number"
	TypeQuantity Type = "quantity" // a number with its unit
	TypeFlag     Type = "flag"
	TypeDuration Type = "duration"
	TypeSize     Type = "size"
	TypeDistance Type = "distance"
	TypeRate     Type = "rate"
	TypePattern  Type = "pattern" // text of a stated form
	TypeWord     Type = "word"
	TypeMapping  Type = "mapping"
	TypeList     Type = "list"
	TypeAny      Type = "any"
	TypeEither   Type = "either"
)

// Form is what a value may be.
type Form struct {
	Type Type
	// Lo and Hi bound integers, numbers, quantities in their unit, durations in ns, sizes in bytes,
	// distances in m and rates in bit/s; of lists, their length (Hi 0: any).
	Lo, Hi float64
	// Unit is the unit of a quantity, which stands behind its number.
	Unit string
	// Words are those of TypeWord.
	Words []string
	// What names a thing that exists: "radio", "protocol"; of TypeAny and TypePattern, what it is
	// for people.
	What string
	// Pattern is the regular expression of TypePattern.
	Pattern string
	// Mapping is that of TypeMapping.
	Mapping *Mapping
	// Elements are what a list holds (one form), or the forms of TypeEither.
	Elements []Form
}

// Text is text of any length.
func Text() Form { return Form{Type: TypeText} }

// Line is one line of text.
func Line() Form { return Form{Type: TypeLine} }

// Name is a name that the document gives.
func Name() Form { return Form{Type: TypeName} }

// Known is the name of something that exists elsewhere or in the document.
func Known(what string) Form { return Form{Type: TypeKnown, What: what} }

// Integer is a whole number from lo to hi.
func Integer(lo, hi float64) Form { return Form{Type: TypeInteger, Lo: lo, Hi: hi} }

// Number is a number from lo to hi.
func Number(lo, hi float64) Form { return Form{Type: TypeNumber, Lo: lo, Hi: hi} }

// Quantity is a number from lo to hi with its unit; "": with one that another key decides,
// or without.
func Quantity(unit string, lo, hi float64) Form {
	return Form{Type: TypeQuantity, Unit: unit, Lo: lo, Hi: hi}
}

// Flag is true or false.
func Flag() Form { return Form{Type: TypeFlag} }

// Duration is a duration from lo to hi.
func Duration(lo, hi time.Duration) Form {
	return Form{Type: TypeDuration, Lo: float64(lo), Hi: float64(hi)}
}

// Size is a size from lo to hi, in bytes.
func Size(lo, hi float64) Form { return Form{Type: TypeSize, Lo: lo, Hi: hi} }

// Matching is text of a form: what says which, pattern is its regular expression.
func Matching(what, pattern string) Form {
	return Form{Type: TypePattern, What: what, Pattern: pattern}
}

// Rate is a rate from lo to hi, in bit/s.
func Rate(lo, hi float64) Form { return Form{Type: TypeRate, Lo: lo, Hi: hi} }

// Distance is a distance from lo to hi, in m; a height where lo is negative.
func Distance(lo, hi float64) Form { return Form{Type: TypeDistance, Lo: lo, Hi: hi} }

// Word is one of the words.
func Word[W ~string](words ...W) Form {
	f := Form{Type: TypeWord}
	for _, w := range words {
		f.Words = append(f.Words, string(w))
	}
	return f
}

// Of is a mapping.
func Of(m *Mapping) Form { return Form{Type: TypeMapping, Mapping: m} }

// List is lo to hi elements; hi 0: any number.
func List(element Form, lo, hi float64) Form {
	return Form{Type: TypeList, Elements: []Form{element}, Lo: lo, Hi: hi}
}

// OneOrMany is an element, or a list of 1 to hi.
func OneOrMany(element Form, hi float64) Form { return Either(element, List(element, 1, hi)) }

// Any is a value that the document's kind does not know the form of; what says what it is.
func Any(what string) Form { return Form{Type: TypeAny, What: what} }

// Either is one of several forms.
func Either(forms ...Form) Form { return Form{Type: TypeEither, Elements: forms} }

// words says what a value may be, for people. Section gives the words for a mapping by its
// name; nil: the name.
func (f Form) words(section func(name string) string) string {
	switch f.Type {
	case TypeLine:
		return "one line of text, at most 200 characters"
	case TypeName:
		return "name: lower-case letters, digits and hyphens, at most 48"
	case TypeKnown:
		return "name of a " + f.What
	case TypeInteger:
		return "whole number, " + f.bounds()
	case TypeNumber:
		return "number" + f.optionalBounds()
	case TypeQuantity:
		if f.Unit == "" {
			return "number with its unit"
		}
		return "number in " + f.Unit + f.optionalBounds()
	case TypeFlag:
		return "`true` or `false`"
	case TypeDuration, TypeDistance, TypeRate, TypeSize:
		if f.Lo < 0 {
			return "height, " + f.bounds()
		}
		return string(f.Type) + ", " + f.bounds()
	case TypeWord:
		return orList(f.Words)
	case TypeMapping:
		return f.Mapping.words(section)
	case TypeList:
		return f.length() + ": " + f.Elements[0].words(section)
	case TypeAny, TypePattern:
		return f.What
	case TypeEither:
		parts := make([]string, len(f.Elements))
		for i, e := range f.Elements {
			parts[i] = e.words(section)
			if e.Type == TypeList && i > 0 && e.Elements[0].Type == f.Elements[0].Type {
				parts[i] = "a list of at most " + e.amount(e.Hi)
			}
		}
		return strings.Join(parts, "; or ")
	}
	return string(f.Type)
}

// words says for people what a mapping is: its section, or its keys where it has none.
func (m *Mapping) words(section func(name string) string) string {
	switch {
	case m.Free != nil && m.Free.Type == TypeMapping:
		return "mapping of " + m.Name + ": " + m.Free.words(section)
	case len(m.Keys) == 0:
		return "mapping of " + m.Name
	case !m.Inline:
		return section(m.Name)
	}
	keys := make([]string, len(m.Keys))
	for i, k := range m.Keys {
		keys[i] = "`" + k.Name + "`: " + k.Form.words(section)
	}
	return strings.Join(keys, "; ")
}

// length says how long a list may be.
func (f Form) length() string {
	switch f.Hi {
	case 0:
		return "list"
	case f.Lo:
		return "list of " + f.amount(f.Hi)
	}
	return "list of at most " + f.amount(f.Hi)
}

func orList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + w + "`"
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

func (f Form) optionalBounds() string {
	if math.IsInf(f.Lo, 0) || math.IsInf(f.Hi, 0) || f.Lo == f.Hi {
		return ""
	}
	return ", " + f.bounds()
}

func (f Form) bounds() string { return f.amount(f.Lo) + " to " + f.amount(f.Hi) }

// amount writes a bound in the form's unit.
func (f Form) amount(x float64) string {
	switch f.Type {
	case TypeDuration:
		return shortDuration(time.Duration(x))
	case TypeSize:
		return unit.FormatBytes(int64(x))
	case TypeRate:
		return unit.FormatRate(x)
	case TypeDistance:
		if x >= 1000 {
			return strconv.FormatFloat(x/1000, 'f', -1, 64) + " km"
		}
		return strconv.FormatFloat(x, 'f', -1, 64) + " m"
	}
	switch {
	case x == math.MaxUint64:
		return "2^64-1"
	case x > 0 && x < 1e-4:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// shortDuration writes a duration without the units that are zero: "5m" for "5m0s".
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// unset says what holds without the key.
func (k *Key) unset() string {
	switch d := k.Default.(type) {
	case nil:
		return k.Unset
	case time.Duration:
		return shortDuration(d)
	default:
		return fmt.Sprint(d)
	}
}
