package schema

import "github.com/sottodp/sotto/config"

// Fields are all fields of a schema file: of the whole, of its blocks, and of each type of column. The reference, the
// JSON schema for editors and the questions of sotto schema init --ask are made of them.
func Fields() []config.Block {
	blocks := []config.Block{
		{Title: "Top level of the schema", Fields: []config.Field{
			config.NewField("dataset", "text", "required",
				"the identity of the data in the ledger. The same people's data keeps its name forever"),
			config.NewField("unit", "text or block", "`record`",
				"whom the guarantee protects: `record`, one row, or [several rows that belong together](#block-unit)"),
			config.NewField("rows", "whole number from 1", "required to train",
				"nominal number of rows: public, the divisor of every mean. Under replace-one the file must have exactly this many"),
			config.NewField("units", "whole number from 1", "required to train with a block `unit`",
				"nominal number of units, instead of `rows`"),
			config.NewField("format", "block", "CSV with a header", "how the file is written"),
			config.NewField("row_norm", "number from 1e-9 to 1e9", "1", "R: every encoded row has a norm of at most R"),
			config.NewField("norm", "text", "`l2`",
				"the norm that `row_norm` bounds, `l1` or `l2`. `l1` suits Laplace noise, for pure ε; it bounds the L2 norm too",
				"l1 l2"),
			config.NewField("row_scaling", "text", "`scale` for CSV and IDX, `project` for LIBSVM",
				"`scale` brings every row that is not zero to the norm R; `project` shrinks only rows above R", "scale project"),
			config.NewField("intercept", "true or false", "true", "a last feature that is always 1, before the row rule"),
			config.NewField("on_bad_row", "text", "`stop`",
				"for a row that does not parse: `stop` is an error, `drop` leaves it out", "stop drop"),
			config.NewField("features", "whole number from 1", "required for LIBSVM", "indices are 1 to this"),
			config.NewField("min", "number up to 0", "−1", "LIBSVM: values are clamped to this from below"),
			config.NewField("max", "number from 0", "1", "LIBSVM: values are clamped to this from above"),
			config.NewField("image", "block", "required for IDX", "what an image is"),
			config.NewField("author", "text", "none", "who wrote this file, for a [disclosure](../how-to/disclosure.md)"),
			config.NewField("source", "text", "none",
				"where the facts about the whole table come from (`rows`, `row_norm`, `min`, `max`, `image`), for a disclosure"),
			config.NewField("other_columns", "`ignore`", "none",
				"columns of the table that `columns` does not name are not used; without it they are an error. Not for tables without a header and JSON Lines", "ignore"),
			config.NewField("columns", "list", "required",
				"CSV: all columns, in the order of the file if it has no header. LIBSVM and IDX: the label alone"),
			config.NewField("pairs", "`none`, or a list of pairs of names", "`none`; `auto` may choose some",
				"CSV: up to 4 [pairs of numeric columns](#pairs-of-columns) that are also encoded together, as in `[[age, hours]]`"),
		}},
		{Title: "Block `unit`", Fields: []config.Field{
			config.NewField("name", "text", "required",
				"what a unit is, in one word, for every text that states the guarantee; the ledger fixes it with the dataset"),
			config.NewField("rows", "whole number from 1 to 65536", "required", "the most rows of one unit that are used"),
		}},
		{Title: "Block `format`", Fields: []config.Field{
			config.NewField("kind", "text", "`csv`",
				"`csv` (named columns: JSON Lines, Parquet, Arrow and tables of databases too), `libsvm` or `idx`",
				"csv libsvm idx"),
			config.NewField("delimiter", "one character", "`,`", "CSV only"),
			config.NewField("header", "true or false", "true", "CSV only: the first line names the columns"),
			config.NewField("comment", "text", "none", "lines that begin with it are no records; not for IDX"),
			config.NewField("trim", "true or false", "false", "CSV only: spaces around a cell are removed"),
			config.NewField("multiline", "true or false", "false",
				"CSV only: a cell in quotes may span lines; [what this asserts](#csv-files)"),
			config.NewField("missing", "list of texts", "`[\"\"]`", "cells that mean that there is no value, in all formats of the kind csv"),
			config.NewField("encoding", "text", "`utf-8`, or UTF-16 with a byte order mark",
				"CSV only: `utf-8`, `utf-16` (without a byte order mark little-endian), `latin-1` or `windows-1252`",
				"utf-8 utf-16 latin-1 windows-1252"),
			config.NewField("decimal", "`.` or `,`", "`.`", "CSV only: the mark before decimals; [numbers as 1.234,5](#numbers-in-csv-files)"),
			config.NewField("thousands", "`,`, `.`, a space, `'` or `_`", "none", "CSV only: the mark between thousands"),
		}},
		{Title: "Block `image`", Fields: []config.Field{
			config.NewField("shape", "list of whole numbers from 1", "required",
				"what the file's header has after the number of images, as in `[28, 28]`"),
			config.NewField("encode", "`pixels` or `scattering`", "`pixels`", "what the features of an image are",
				"pixels scattering"),
			config.NewField("center", "number, or a list with one for each pixel", "0", "what is subtracted"),
			config.NewField("scale", "number above 0, or a list with one for each pixel", "255",
				"what the difference is divided by"),
		}},
	}
	for _, t := range columnTypes {
		name := "as in the header"
		if t.name == TypeIgnore {
			name += "; may be empty"
		}
		fields := []config.Field{config.NewField("name", "text", "required", name),
			config.NewField("type", "text", "required", "`"+t.name+"`: "+t.about, t.name)}
		if t.ranges() {
			fields[0] = config.NewField("name", "text", "required, or `names`", name)
			fields = append(fields, config.NewField("names", "text", "none",
				"instead of `name`: several columns alike, as `gene_1..gene_2309` ([ranges of names](#ranges-of-names))"))
		}
		blocks = append(blocks,
			config.Block{Title: "Columns of type `" + t.name + "`", Fields: append(fields, t.fields...)})
	}
	return blocks
}
