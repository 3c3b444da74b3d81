package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/report"
	"github.com/sottodp/sotto/run/trace"
	"github.com/sottodp/sotto/schema"
)

func schemaCommand() *cobra.Command {
	c := &cobra.Command{Use: "schema", Short: "Public descriptions of tables"}
	var delimiter, outPath string
	init := &cobra.Command{
		Use:   "init FILE",
		Short: "Write a schema skeleton from a table's header",
		Long: `Init reads the first line of a CSV file, or the header of a Parquet file, of images
(IDX) or of a table of a database, and nothing else, and writes a schema in
which every type, bound and level is left for a person to fill in. They must come
from knowledge of the world, not from the table: a bound read off the data tells
about the data.`,
		Example: "  sotto schema init patients.csv > schema.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if st, err := os.Stat(outPath); outPath != "" && err == nil && st.Mode().IsRegular() && st.Size() > 0 {
				return usageError("--out: %s exists; allowed is a new file: a schema that somebody filled in is not overwritten", outPath)
			}
			b, err := data.SkeletonFromFile(args[0], delimiter)
			if err != nil {
				return err
			}
			return output(c.OutOrStdout(), "out", outPath, func(w io.Writer) error {
				_, err := w.Write(b)
				return err
			})
		},
	}
	init.Flags().StringVar(&delimiter, "delimiter", "", "delimiter of the file (default: the commonest of , ; tab | in the header)")
	init.Flags().StringVar(&outPath, "out", "", "file to write (default: standard output)")
	var asJSON bool
	check := &cobra.Command{
		Use:     "check SCHEMA",
		Short:   "Check a schema and list what a guarantee will rest on",
		Example: "  sotto schema check schema.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := data.LoadSchema(args[0])
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if asJSON {
				said := map[string]any{
					"dataset": s.Dataset, "unit": s.Unit, "rows": s.Rows, "features": s.Dim(), "label": s.LabelName(), "classes": s.ClassNames(), "assumptions": s.Assumptions(),
				}
				if s.UnitRows > 0 {
					delete(said, "rows")
					said["units"], said["unit_rows"], said["unit_column"] = s.Rows, s.UnitRows, s.UnitColumn()
				}
				return json.NewEncoder(w).Encode(said)
			}
			fmt.Fprintf(w, "%s: ", args[0])
			printSchema(w, s)
			if s.Rows == 0 {
				fmt.Fprintf(w, "There is no field %s; training needs it: a public number that a person writes, about as many as the table has.\n", s.Counted())
			}
			return nil
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.AddCommand(init, check)
	group(c)
	return c
}

// printSchema lists what a guarantee will rest on.
func printSchema(w io.Writer, s *schema.Schema) {
	fmt.Fprintf(w, "%s encoded features, label %q\n", count(s.Dim()), s.LabelName())
	for _, a := range s.Assumptions() {
		fmt.Fprintln(w, "-", a)
	}
}

func synthCommand() *cobra.Command {
	var schemaPath, outPath string
	var packed bool
	var rows, units int
	var seed uint64
	c := &cobra.Command{
		Use:     "synth --schema FILE --rows N | --units N",
		Short:   "Make a synthetic table that fits a schema, with a known truth",
		Long:    "Synth draws rows within the schema's public bounds and levels and labels them by a\nrandom true model. The same seed gives the same table. No real record is involved.\n\nUnder a schema with a unit of several rows --units says how many units there are.\n\nWith --packed it writes the table as `sotto data pack` would, without the text in\nbetween, and needs memory for 1,024 rows only.",
		Example: "  sotto synth --schema examples/clinic/schema.yaml --rows 4000 --seed 1 > patients.csv",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if schemaPath == "" || rows < 1 && units < 1 {
				return usageError("--schema FILE and --rows N (1 or more) are needed, or --units N")
			}
			s, err := data.LoadSchema(schemaPath)
			if err != nil {
				return err
			}
			records, other := rows, units
			if s.UnitRows > 0 {
				records, other = units, rows
			}
			if records < 1 || other != 0 {
				return usageError("found --rows %d and --units %d; allowed is --units alone for a schema with a unit of several rows, --rows alone for others", rows, units)
			}
			if packed {
				if outPath == "" {
					return usageError("--packed: a packed table needs a file; --out FILE names it")
				}
				if err := newFile(outPath, true, schemaPath); err != nil {
					return err
				}
				_, err := data.SynthPacked(s, records, seed, outPath)
				return err
			}
			return output(c.OutOrStdout(), "out", outPath, func(w io.Writer) error {
				_, err := data.Synth(s, records, seed, w)
				return err
			})
		},
	}
	c.Flags().StringVar(&schemaPath, "schema", "", "schema of the table (required)")
	c.Flags().IntVar(&rows, "rows", 0, "number of rows (this or --units is required)")
	c.Flags().IntVar(&units, "units", 0, "number of units, for a schema with a unit of several rows")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the table")
	c.Flags().BoolVar(&packed, "packed", false, "write a packed table (to --out)")
	c.Flags().StringVar(&outPath, "out", "", "file to write (default: standard output)")
	return c
}

// output writes to the file that a flag names, or to w where it names none. A file appears as a
// whole or not at all.
func output(w io.Writer, flag, path string, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		return buffered(w, write)
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // a pipe, a device
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return usageError("--%s: %v", flag, err)
		}
		return errors.Join(buffered(f, write), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil { // of a name that nobody gave
		var cause *fs.PathError
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return usageError("--%s: %s: found a folder that takes no file: %v", flag, filepath.Dir(path), err)
	}
	defer os.Remove(f.Name()) // does nothing after the rename
	if err := errors.Join(buffered(f, write), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func buffered(w io.Writer, write func(io.Writer) error) error {
	buf := bufio.NewWriter(w)
	if err := write(buf); err != nil {
		return err
	}
	return buf.Flush()
}

func reportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report DIR",
		Short: "Verify a run and rebuild its report from its directory",
		Long: `Report verifies a finished run, as sotto verify does without a ledger, and makes its report again. What does
not hold stands in red at the top of the page, and the exit code is 1. The report that the run wrote when it ended
is never written over, since the ledger holds its hash: the new one is report.new.html beside it.`,
		Example: "  sotto report runs/20261120-154800-0a1b2c3d",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			info, err := trace.ReadInfo(args[0])
			if err != nil {
				return usageError("%v", err)
			}
			var broken, names []string
			verified := info.Status == trace.Finished && info.Network == ""
			if verified {
				found, err := run.Verify(c.Context(), args[0], nil)
				if err != nil { // files that do not even fit each other
					broken, names = append(broken, err.Error()), append(names, "the record")
				}
				for _, f := range found {
					if !f.Holds {
						broken, names = append(broken, f.What+": "+f.Detail), append(names, f.What)
					}
				}
			}
			path, err := report.Rebuild(args[0], verified, broken)
			var place *os.LinkError // of the rename that puts the file there
			switch {
			case errors.Is(err, report.ErrPart):
				return usageError("%s: %v", args[0], report.ErrPart)
			case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.As(err, &place):
				return usageError("%v", err)
			case err != nil:
				return err
			}
			if _, err := fmt.Fprintln(c.OutOrStdout(), path); err != nil {
				return err
			}
			if len(broken) > 0 {
				return fmt.Errorf("%s: does not hold: %s; the report says so at its top", args[0], strings.Join(names, ", "))
			}
			return nil
		},
	}
}
