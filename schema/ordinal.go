package schema

import (
	"fmt"

	"github.com/sottodp/sotto/config"
)

// ordinalType is one of some public levels in their order: one feature, at equal distances from −1 to 1.
var ordinalType = columnType{
	name:   TypeOrdinal,
	about:  "one of some public levels in their order",
	asks:   []Question{{Field: "levels"}, {Field: "unknown"}, {Field: "source"}},
	fields: levelFields("all public levels in their order, two or more", "the middle of the range"),
	sample: [][2]string{{"{name: stage, type: ordinal, levels: [I, II, III, IV]}", "levels in their order, one number"}},
	read:   readLevels,
	check: func(c *Column, path string, _ bool) *config.Error {
		return c.checkLevels(path, 2, "the public levels in their order, two or more")
	},
	form: func(c *Column) *Form {
		f := c.levelForm()
		f.Line = levelLine(len(c.Levels))
		return f
	},
	says: func(c *Column) string { return saysLevels(c) + " in order" },
	assumes: func(c *Column) string {
		return fmt.Sprintf("has %d public levels in order, at equal distances; an unknown level %s, a missing one %s",
			len(c.Levels), ruleWords(c.Unknown), ruleWords(c.Missing))
	},
}

// levelLine is the line on which that many levels stand, two or more.
func levelLine(levels int) *Line { return &Line{Bounds{0, float64(levels - 1)}, TransformNone} }
