package schema

import (
	"fmt"
	"math"
	"strconv"

	"github.com/sottodp/sotto/config"
)

// numericType is a number within public bounds.
var numericType = columnType{
	name:  TypeNumeric,
	about: "a number within public bounds; values beyond are clamped to them",
	asks: []Question{
		{Field: "min", Word: BoundsUnknown, Means: "sotto schema bounds estimates both later, at a cost", Instead: "bounds",
			Then: []Question{{Field: "missing"}}},
		{Field: "max"}, {Field: "missing"}, {Field: "source"},
	},
	fields: []config.Field{
		config.NewField("min", "number", "required", "public lower bound: smaller values count as it"),
		config.NewField("max", "number", "required", "public upper bound, above `min`"),
		config.NewField("bounds", "text", "none",
			"`unknown`, instead of `min` and `max`, until [`sotto schema bounds`](#bounds-that-nobody-knows) has proposed them",
			"unknown"),
		config.NewField("transform", "text", "`none`", "`none`, `log1p` (for `min` ≥ 0) or `signed_log1p`",
			"none log1p signed_log1p"),
		config.NewField("encode", "text", "chosen by the run",
			"`linear`, one feature, `hats`, bumps beside it, or `waves`, smooth curves beside it", "linear hats waves"),
		config.NewField("hats", "whole number from 2 to 64", "8 with `encode: hats`",
			"number of bumps; without `encode` it means `encode: hats`"),
		config.NewField("waves", "whole number from 1 to 6", "3 with `encode: waves`",
			"number of waves; without `encode` it means `encode: waves`"),
		config.NewField("missing", "text or number", "`error`",
			"what a missing mark counts as: `error` (a bad row), `zero` (the middle of the range) or a number within the bounds"),
		config.NewField("source", "text", "none", "where the bounds come from, for a [disclosure](../how-to/disclosure.md)"),
	},
	sample: [][2]string{
		{"{name: age, type: numeric, min: 0, max: 120}", "values beyond are clamped"},
		{"{name: income, type: numeric, min: 0, max: 1e6, transform: log1p}", ""},
		{"{name: glucose, type: numeric, bounds: unknown}", "sotto schema bounds estimates them at a cost"},
	},
	read: func(r *reader, path string, f *column, c *Column) {
		if r.doc.Has(path + ".bounds") {
			r.unknown(path+".", f.Bounds)
		} else {
			c.Bounds = r.bounds(path, f)
		}
		c.Transform = or(r, path+".transform", f.Transform, TransformNone)
		c.Hats, c.Waves = r.curves(path+".", f)
		c.Free = !r.doc.Has(path+".encode") && c.Hats == 0 && c.Waves == 0
		c.Missing = or(r, path+".missing", f.Missing, RuleError)
	},
	check: func(c *Column, path string, open bool) *config.Error {
		t := Transform(c.Transform)
		if t == nil {
			return columnFault(path+".transform", config.Quote(c.Transform), "none, log1p or signed_log1p")
		}
		if open && c.Bounds == nil {
			return c.checkOpen(path)
		}
		if e := c.Bounds.check(path); e != nil {
			return e
		}
		if c.Transform == TransformLog1p && c.Bounds.Min < 0 {
			return columnFault(path+".transform", "log1p with a min below 0", "min of 0 or more, or signed_log1p")
		}
		if w := t(c.Bounds.Max) - t(c.Bounds.Min); !(w > 0) || math.IsInf(w, 0) {
			return columnFault(path+".max", "bounds whose distance is 0 or infinite after the transform",
				"bounds farther apart, or nearer to each other")
		}
		if e := c.checkHats(path); e != nil {
			return e
		}
		if r, fault := ruleOf(c.Missing, config.ParseNumber); fault != "" ||
			!r.Bad && !r.Zero && (r.Value < c.Bounds.Min || r.Value > c.Bounds.Max) {
			return columnFault(path+".missing", config.Quote(c.Missing), "error, zero or a number from min to max")
		}
		return nil
	},
	form: func(c *Column) *Form {
		f := &Form{
			Unknown: Rule{Bad: true}, Whole: true,
			allowed: "a finite number; values out of bounds are clamped",
			wanted:  "a number, or a missing rule for this column in the schema",
		}
		f.Missing, _ = ruleOf(c.Missing, config.ParseNumber)
		if c.Bounds == nil {
			f.Grid = true
			return f
		}
		f.Line, f.Bumps, f.Waves = &Line{*c.Bounds, c.Transform}, c.Hats, c.Waves
		return f
	},
	says: func(c *Column) string { return "from " + num(c.Bounds.Min) + " to " + num(c.Bounds.Max) },
	assumes: func(c *Column) string {
		t := ""
		if c.Transform != TransformNone {
			t = ", then transformed by " + c.Transform
		}
		if c.Hats > 0 {
			t += fmt.Sprintf(", and encoded as one linear feature and %d bumps at equal distances", c.Hats)
		}
		if c.Waves > 0 {
			t += fmt.Sprintf(", and encoded as one linear feature and %d waves", c.Waves)
		}
		return fmt.Sprintf("is clamped to [%s, %s]%s; %s", num(c.Bounds.Min), num(c.Bounds.Max), t, c.missingWords())
	},
}

const wavesAllowed = "a whole number from 1 to 6, the waves beside the linear feature"

const hatsAllowed = "a whole number from 2 to 64, the bumps beside the linear feature"

func (c *Column) checkHats(path string) *config.Error {
	if c.Hats != 0 && (c.Hats < minHats || c.Hats > maxHats) {
		return columnFault(path+".hats", strconv.Itoa(c.Hats), hatsAllowed)
	}
	if c.Waves < 0 || c.Waves > maxWaves {
		return columnFault(path+".waves", strconv.Itoa(c.Waves), wavesAllowed)
	}
	if c.Hats > 0 && c.Waves > 0 {
		return columnFault(path+".waves", "waves beside bumps", "hats or waves")
	}
	return nil
}

// checkOpen checks what a numeric column without bounds says beside them.
func (c *Column) checkOpen(path string) *config.Error {
	if _, fault := ruleOf(c.Missing, config.ParseNumber); fault != "" {
		return columnFault(path+".missing", config.Quote(c.Missing), "error, zero or a number")
	}
	return c.checkHats(path)
}

// Bumps are the values of that many bumps, two or more, where the linear feature is x, from −1 to 1. Bump j is 1 at its
// center, the j-th of so many points at equal distances from −1 to 1, and falls to 0 at the next ones: all are 0 but
// bump j and the one after it, and these two sum to 1.
func Bumps(hats int, x float64) (j int, left, right float64) {
	u := (x + 1) * (float64(hats-1) / 2) // centers are at 0, 1, …
	j = min(int(u), hats-2)
	return j, 1 - (u - float64(j)), 1 - (float64(j+1) - u)
}

// ParseHats reads a number of bumps beside a linear feature.
func ParseHats(text string) (hats int, ok bool) {
	hats, err := strconv.Atoi(text)
	return hats, err == nil && minHats <= hats && hats <= maxHats
}

// transforms are the public transforms of numeric columns; each is increasing.
var transforms = map[string]func(float64) float64{
	TransformNone:        func(v float64) float64 { return v },
	TransformLog1p:       math.Log1p,
	TransformSignedLog1p: func(v float64) float64 { return math.Copysign(math.Log1p(math.Abs(v)), v) },
}

// Transform is the transform of that name, nil for none.
func Transform(name string) func(float64) float64 { return transforms[name] }
