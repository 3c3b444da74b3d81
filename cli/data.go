package cli

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/run"
)

func dataCommand() *cobra.Command {
	c := &cobra.Command{Use: "data", Short: "Pack tables, describe them"}
	c.AddCommand(packCommand(), infoCommand(), keyCommand())
	group(c)
	return c
}

func packCommand() *cobra.Command {
	var schemaPath, dataPath, outPath, label, rowKey string
	var opt data.Options
	var force bool
	var bits int
	var accept *bool
	c := &cobra.Command{
		Use:   "pack --schema FILE --data FILE --out FILE",
		Short: "Encode a table in a file that is mapped into memory",
		Long: `Pack writes the encoded rows of a table to one binary file. Commands that train, score or
predict take that file instead of the table, with the same results bit for bit, but map it into
memory: training then needs memory for the model, not for the table. Only predictions of models
that chose pairs of columns differ from those of the file, in their last digits. Under a schema without an
intercept, with text or with curves of its own, method auto chooses no bumps for packed rows.

With --bits 16 the rows are whole numbers of 16 bits: half of the file, on which linear
models train in about half of the time. It is for dense tables of up to 4,096 features.
Digits that do not fit are cut off, so results are close to those of the table, not the
same. What needs float32, such as a network, gets such rows in memory.

The file holds the rows. Guard it as you guard the table. It also holds hashes of the
rows under a key of this machine's, so that the gate recognizes parts and copies of it
(docs/explanation/privacy.md). A worker's shard needs those of its coordinator instead:
--row-key names the file that sotto data key writes there.`,
		Example: "  sotto data pack --schema schema.yaml --data patients.csv.gz --out patients.pack\n  sotto fit sotto.yaml --data patients.pack",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if schemaPath == "" || dataPath == "" || outPath == "" {
				return usageError("--schema FILE, --data FILE and --out FILE are needed")
			}
			s, err := data.LoadSchema(schemaPath)
			if err != nil {
				return err
			}
			if label != "" {
				if s, err = s.WithLabel(label); err != nil {
					return usageError("--label: %v", err)
				}
			}
			if bits != 32 && bits != 16 {
				return usageError("--bits: found %d; choose 32 or 16", bits)
			}
			opt.Short = bits == 16
			files, err := data.Files(dataPath)
			if err != nil {
				return err
			}
			if err := newfile.Check(outPath, force, append(files, schemaPath)...); err != nil {
				return err
			}
			gate := access.Gate{Notice: warner(c), Dropped: run.Dropped(warner(c), *accept)}
			if rowKey != "" {
				if gate.PackKey, err = access.ReadKey(rowKey); err != nil {
					return &run.InputError{Where: "--row-key", Err: err}
				}
			}
			// Little but the hashes of rows stays in memory: collecting early keeps what pages leave small beside them.
			defer debug.SetGCPercent(debug.SetGCPercent(50))
			_, err = gate.Pack(c.Context(), s, dataPath, outPath, opt)
			return err
		},
	}
	accept = addAcceptDropped(c.Flags())
	c.Flags().StringVar(&schemaPath, "schema", "", "schema of the table (required)")
	c.Flags().StringVar(&dataPath, "data", "", "table to pack (required)")
	c.Flags().StringVar(&opt.Labels, "labels", "", labelsUsage)
	c.Flags().StringVar(&label, "label", "", labelUsage)
	c.Flags().BoolVar(&opt.Unlabeled, "unlabelled", false, "leave the labels out, as for rows to predict")
	c.Flags().StringVar(&rowKey, "row-key", "", "file of another machine's key of row hashes (sotto data key)")
	c.Flags().IntVar(&bits, "bits", 32, "32, or 16 for rows of half the size")
	c.Flags().StringVar(&outPath, "out", "", "file to write, a new one (required)")
	c.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return c
}

func keyCommand() *cobra.Command {
	var outPath string
	c := &cobra.Command{
		Use:   "key --out FILE",
		Short: "Write this machine's key of row hashes, to pack a worker's shard with",
		Long: `Key writes the key under which this machine hashes rows, for sotto data pack --row-key on
a worker of the same owner: the coordinator compares packed shards by such hashes. Anyone with
the key and a packed table can test whether a row is in it. Delete the file after use.`,
		Example: "  sotto data key --out row.key\n  sotto data pack --schema schema.yaml --data part1.csv --row-key row.key --out part1.pack",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if outPath == "" {
				return usageError("--out FILE is needed")
			}
			if err := newfile.Check(outPath, false); err != nil {
				return err
			}
			return access.WriteKey(outPath)
		},
	}
	c.Flags().StringVar(&outPath, "out", "", "file to write, a new one (required)")
	return c
}

func infoCommand() *cobra.Command {
	var schemaPath string
	c := &cobra.Command{
		Use:   "info FILE",
		Short: "Print the public facts of a table",
		Long: `Info prints the public facts of a table: form, features, label, and the assumptions
of a guarantee. It shows nothing that depends on a row, not even their number. A
packed table holds its schema; for others --schema names it.`,
		Example: "  sotto data info patients.pack",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := access.Describe(c.Context(), args[0])
			if err != nil {
				return err
			}
			if schemaPath != "" {
				s, err := data.LoadSchema(schemaPath)
				if err != nil {
					return err
				}
				if d.Schema != nil && d.Schema.Fingerprint() != s.Fingerprint() {
					return usageError("--schema: %s: found another schema than %s was packed under", schemaPath, args[0])
				}
				d.Schema = s
			}
			w := c.OutOrStdout()
			fmt.Fprintf(w, "%s: %s\n", data.Public(args[0]), d.Form)
			if d.Shape != nil {
				var shape []string
				for _, k := range d.Shape {
					shape = append(shape, count(k))
				}
				fmt.Fprintf(w, "shape of an image: %s\n", strings.Join(shape, " × "))
			}
			for _, f := range d.Fields {
				fmt.Fprintf(w, "column %q: %s\n", f.Name, f.Type)
			}
			if d.Schema == nil {
				fmt.Fprintln(w, "its schema holds the other public facts: --schema FILE")
				return nil
			}
			printSchema(w, d.Schema)
			return nil
		},
	}
	c.Flags().StringVar(&schemaPath, "schema", "", "schema of the table")
	return c
}
