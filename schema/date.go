package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sottodp/sotto/config"
)

const (
	dateAllowed   = "a date in ISO 8601, as 2024-03-31 or 2024-03-31T14:05"
	cyclesAllowed = "a list of day, week and year, each once"
)

// dateType is a date, perhaps with a time of day. Its number is that of days since a public origin.
var dateType = columnType{
	name:  TypeDate,
	about: "a date, perhaps with a time, within public bounds",
	asks: []Question{{Field: "min"}, {Field: "max"}, {Field: "layout"}, {Field: "cycles"}, {Field: "missing"},
		{Field: "source"}},
	fields: []config.Field{
		config.NewField("min", "date", "required", "public lower bound, as 2020-01-01: earlier dates count as it"),
		config.NewField("max", "date", "required", "public upper bound, after `min`"),
		config.NewField("origin", "date", "as `min`",
			"the day that days are counted from; it changes only the input of an [ONNX file](run-directory.md#onnx), no feature"),
		config.NewField("layout", "text", "ISO 8601", "what a cell looks like, as `%d.%m.%Y`"),
		config.NewField("cycles", "list of texts", "none", "`day`, `week`, `year`: two features each, for effects that repeat with them"),
		config.NewField("missing", "text", "`error`",
			"what a missing mark counts as: `error` (a bad row), `zero` (all features 0) or a date within the bounds"),
		config.NewField("source", "text", "none", "where the bounds come from, for a [disclosure](../how-to/disclosure.md)"),
	},
	sample: [][2]string{
		{"{name: admitted, type: date, min: 2020-01-01, max: 2024-12-31}", "or with a time; dates beyond are clamped"},
		{`{name: seen, type: date, layout: "%d.%m.%Y %H:%M", cycles: [day, week, year], min: 2020-01-01, max: 2024-12-31}`,
			""},
	},
	read: func(r *reader, path string, f *column, c *Column) {
		r.need(path+".min", "a public bound: "+dateAllowed)
		r.need(path+".max", "a public bound: "+dateAllowed)
		c.Origin = or(r, path+".origin", f.Origin, f.Min.Text())
		least, most, origin := r.date(path+".min", f.Min.Text()), r.date(path+".max", f.Max.Text()),
			r.date(path+".origin", c.Origin)
		c.Bounds = &Bounds{least - origin, most - origin}
		c.Layout, c.Cycles = f.Layout, f.Cycles
		if r.doc.Has(path+".cycles") && len(f.Cycles) == 0 {
			r.fail(path+".cycles", "an empty list", cyclesAllowed+", or no cycles")
		}
		c.Missing = or(r, path+".missing", f.Missing, RuleError)
	},
	check: func(c *Column, path string, _ bool) *config.Error {
		origin, fault := unixDays(c.Origin)
		if fault != "" {
			return columnFault(path+".origin", config.Quote(c.Origin), dateAllowed)
		}
		if c.Bounds != nil && c.Bounds.Min >= c.Bounds.Max { // in words of dates
			return columnFault(path+".max", "a date that is not after min",
				"a date after min, which is "+c.dateText(c.Bounds.Min))
		}
		if e := c.Bounds.check(path); e != nil {
			return e
		}
		for _, b := range []struct {
			field string
			v     float64
		}{{".min", c.Bounds.Min}, {".max", c.Bounds.Max}} {
			if d := origin + b.v; !(firstDay <= d && d < lastDay) {
				return columnFault(path+b.field, "a date out of the years 0 to 9999", dateAllowed)
			}
		}
		if _, fault := goLayout(c.Layout); fault != "" {
			return columnFault(path+".layout", fault,
				"what stands in a cell, as %d.%m.%Y or %m/%d/%y %I:%M %p, or no layout for ISO 8601")
		}
		for i, name := range c.Cycles {
			if _, ok := cycles[name]; !ok || slices.Contains(c.Cycles[:i], name) {
				return columnFault(path+".cycles", config.Quote(name), cyclesAllowed)
			}
		}
		if r, fault := c.missingDate(origin); fault != "" ||
			!r.Bad && !r.Zero && (r.Value < c.Bounds.Min || r.Value > c.Bounds.Max) {
			return columnFault(path+".missing", config.Quote(c.Missing), "error, zero or a date from min to max, in ISO 8601")
		}
		return nil
	},
	form: func(c *Column) *Form {
		origin, _ := unixDays(c.Origin)
		layout, _ := goLayout(c.Layout)
		f := &Form{
			Counts: "days since " + c.Origin, Step: "a day", Whole: true, Unknown: Rule{Bad: true},
			Line:    &Line{*c.Bounds, TransformNone},
			allowed: "a date in ISO 8601, or a layout for this column in the schema; dates out of bounds are clamped",
			wanted:  "a date, or a missing rule for this column in the schema",
		}
		read := unixDays
		if layout != "" {
			f.allowed = "a date that the column's layout in the schema describes; dates out of bounds are clamped"
			read = func(cell string) (float64, string) {
				t, err := time.Parse(layout, cell)
				if err != nil {
					return 0, noDate
				}
				return daysOf(t), ""
			}
		}
		f.reader = func() func(string) (float64, string) {
			return func(cell string) (float64, string) {
				v, fault := read(cell)
				return v - origin, fault
			}
		}
		f.Write = func(v float64) string {
			t := timeOf(origin + v)
			if layout != "" {
				return t.Format(layout)
			}
			return isoText(t)
		}
		f.Missing, _ = c.missingDate(origin)
		for _, name := range c.Cycles {
			cycle := cycles[name]
			cycle.Zero -= origin
			f.Cycles = append(f.Cycles, cycle)
		}
		return f
	},
	says: func(c *Column) string {
		return "from " + c.dateText(c.Bounds.Min) + " to " + c.dateText(c.Bounds.Max)
	},
	assumes: func(c *Column) string {
		more := ""
		if len(c.Cycles) > 0 {
			more = ", and its place in the " + strings.Join(c.Cycles, ", in the ") + " as a sine and a cosine"
		}
		return fmt.Sprintf("is a date in UTC clamped to %s … %s, as days since %s%s; %s", c.dateText(c.Bounds.Min),
			c.dateText(c.Bounds.Max), c.Origin, more, c.missingWords())
	},
}

// cycles are the cyclic parts of a date, in days since 1970: from midnight, from Monday, and from the beginning of 2000
// in mean years of the calendar.
var cycles = map[string]Cycle{
	"day":  {"day", 1, 0},
	"week": {"week", 7, 4},
	"year": {"year", 365.2425, 10957},
}

// At is the cycle's sine and cosine for a number of its column.
func (c Cycle) At(v float64) (sine, cosine float64) {
	u := (v - c.Zero) / c.Period
	return math.Sincos(2 * math.Pi * (u - math.Floor(u)))
}

// The days since 1970 of the years 0 to 9999.
const (
	firstDay = -719528
	lastDay  = 2932897
)

const noDate = "text that is not a date"

// date is the date in a field, in days since 1970.
func (r *reader) date(path, text string) float64 {
	days, fault := unixDays(text)
	if fault != "" && r.doc.Has(path) {
		r.fail(path, config.Quote(text), dateAllowed)
	}
	return days
}

// missingDate is the rule for cells without a value.
func (c *Column) missingDate(origin float64) (Rule, string) {
	return ruleOf(c.Missing, func(text string) (float64, string) {
		v, fault := unixDays(text)
		return v - origin, fault
	})
}

// dateText is a number of the column as a date.
func (c *Column) dateText(v float64) string {
	origin, _ := unixDays(c.Origin)
	return isoText(timeOf(origin + v))
}

// isoText is a time in UTC, without a time of day where that is midnight.
func isoText(t time.Time) string {
	if t.Truncate(24 * time.Hour).Equal(t) {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02T15:04:05.999999999")
}

// timeOf is the time, to the nearest second, of days since 1970; daysOf are its days.
func timeOf(days float64) time.Time {
	return time.Unix(int64(math.Round(days*86400)), 0).UTC()
}

func daysOf(t time.Time) float64 {
	return (float64(t.Unix()) + float64(t.Nanosecond())/1e9) / 86400
}

// unixDays are the days from 1970 to a date of the years 0 to 9999 in the form of ISO 8601: 2024-03-31, with a time
// 2024-03-31T14:05 or 2024-03-31T14:05:30.5, a space in place of the T, and an offset behind the time, as Z, +02, +0200
// or +02:00. A time with an offset is that in UTC; one without is in UTC.
func unixDays(cell string) (days float64, fault string) {
	n := 0 // bytes that were read
	number := func(digits, least, most int) int {
		v := 0
		for range digits {
			if n >= len(cell) || cell[n] < '0' || cell[n] > '9' {
				n = len(cell) + 1 // nothing that follows is there
				return 0
			}
			v = 10*v + int(cell[n]-'0')
			n++
		}
		if v < least || v > most {
			n = len(cell) + 1
		}
		return v
	}
	next := func(allowed string) bool {
		if n < len(cell) && strings.IndexByte(allowed, cell[n]) >= 0 {
			n++
			return true
		}
		return false
	}
	must := func(allowed string) {
		if !next(allowed) {
			n = len(cell) + 1
		}
	}
	year := number(4, 0, 9999)
	must("-")
	month := number(2, 1, 12)
	must("-")
	day := number(2, 1, 31)
	seconds := 0.0
	if n < len(cell) {
		must("T ")
		seconds = 3600 * float64(number(2, 0, 23))
		must(":")
		seconds += 60 * float64(number(2, 0, 59))
		if next(":") {
			seconds += float64(number(2, 0, 59))
			if next(".") {
				part := 0.1
				for seconds += part * float64(number(1, 0, 9)); n < len(cell) && '0' <= cell[n] && cell[n] <= '9'; {
					part /= 10
					seconds += part * float64(number(1, 0, 9))
				}
			}
		}
		if n < len(cell) && !next("Z") {
			sign := 60.0
			if cell[n] == '+' {
				sign = -60
			}
			must("+-")
			offset := 60 * number(2, 0, 23)
			if n < len(cell) {
				next(":")
				offset += number(2, 0, 59)
			}
			seconds += sign * float64(offset)
		}
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if n != len(cell) || t.Day() != day { // no 30th of February
		return 0, noDate
	}
	return float64(t.Unix()/86400) + seconds/86400, ""
}

// layoutParts are the parts of a layout in words of package time. All but %Y, %y and %z take one digit or two.
var layoutParts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "1", 'd': "2", 'b': "Jan", 'H': "15", 'I': "3", 'M': "4", 'S': "5", 'p': "PM",
	'z': "-0700",
}

// goLayout is a layout in the form of package time, or what is wrong with it. Between its parts are characters that are
// no letters and no digits, so that nothing else of it means something there, and the letter T.
func goLayout(layout string) (text, fault string) {
	if layout == "" {
		return "", ""
	}
	var b strings.Builder
	seen := map[byte]bool{}
	for i := 0; i < len(layout); i++ {
		switch c := layout[i]; {
		case c == '%' && i+1 < len(layout) && layoutParts[layout[i+1]] != "":
			i++
			if seen[layout[i]] {
				return "", config.Quote(layout) + ", with %" + layout[i:i+1] + " a second time"
			}
			seen[layout[i]] = true
			b.WriteString(layoutParts[layout[i]])
		case strings.IndexByte(" /.:,-T", c) >= 0:
			b.WriteByte(c)
		default:
			return "", config.Quote(layout) +
				", with other parts than %Y, %y, %m, %d, %b, %H, %I, %M, %S, %p, %z and punctuation between them"
		}
	}
	year, month := seen['Y'] != seen['y'], seen['m'] != seen['b']
	if !year || !month || !seen['d'] {
		return "", config.Quote(layout) + ", which does not say year, month and day once each"
	}
	if seen['I'] != seen['p'] || seen['I'] && seen['H'] {
		return "", config.Quote(layout) + ", which does not say the hour by %H, or by %I with %p"
	}
	return b.String(), ""
}
