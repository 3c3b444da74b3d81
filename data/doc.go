// Package data turns files of records into encoded tables under a public schema.
//
// A [schema.Schema] is what a person knows about the data beforehand: columns, bounds, levels, classes,
// the norm bound of a row. [schema.Parse] reads it from YAML. [Read] reads a table under a schema, in one
// of the formats of package data/source or as [Pack] has encoded it beforehand.
//
// # Encoding
//
// A numeric cell v is clamped to its public [min, max], transformed by t (none, log1p or signed_log1p)
// and mapped to 2(t(v)−t(min))/(t(max)−t(min))−1, which lies in [−1, 1]. A categorical cell becomes one 1
// among as many zeros as there are public levels. The values of a LIBSVM row are clamped and kept. The
// intercept, if the schema has one, is a last feature that is always 1.
//
// Then the row rule: scale brings every non-zero row to the norm bound (just below it), project shrinks
// only the rows above it. The bound is on the ℓ2 norm, or on the ℓ1 norm where the schema says so.
// Finally every value is rounded toward zero to a multiple of Unit = 2⁻²⁰·P, where P is the smallest
// power of two that is not below the norm bound. A stored value thus has at most 21 significant bits, is
// exact in a float32, and sums of squares of a row are exact in a float64: for each row the check of the
// norm against its bound is exact.
//
// The encoding of a row depends on this row and on public facts, never on its position in the file or on
// other rows (R14). No figure of the data standardizes anything.
//
// # Rows
//
// A row is one line, in CSV too: a quoted cell must be closed on its line. Otherwise one stray quote
// would swallow the rows after it, and one person's row could change those of others. Blank lines and
// lines that begin with the schema's comment mark are not rows.
//
// The blocks of a table that [Read] makes hold BlockRows rows each, except the last: row r is row r mod
// BlockRows of block r div BlockRows.
//
// # Units
//
// If the schema has a column of type unit, all rows with the same id belong to one unit. A record is then
// the unit with its rows, and [Subset], [RowHashes] and [Read] never divide a unit (R12).
// [Table.UnitRows] and [Table.Shares] say which rows count and for how much. The table keeps only hashes
// of ids, under a key of the process that is written nowhere; a packed table keeps none.
//
// # Cells that are missing or unknown
//
// A categorical cell is looked up among the levels first. If it is not there and it is one of the missing
// marks of the format, the column's missing rule applies, and otherwise its unknown rule. Both rules are
// error, zero (no level is set: all zeros) or a level to use instead. The default of the unknown rule is
// error; the default of the missing rule is the unknown rule. A numeric cell with a missing mark follows
// the column's missing rule: error (the default), zero (the encoded value 0, the middle of the range) or
// a number within the bounds. A label may never be missing.
//
// # Errors
//
// An error in a file is a [*config.Error]. It names the position and the kind of error, never a value.
package data
