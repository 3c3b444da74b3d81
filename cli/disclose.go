package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/page/disclosure"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

func discloseCommand() *cobra.Command {
	var q discloseFlags
	c := &cobra.Command{
		Use:   "disclose RUN",
		Short: "Write what a privacy officer signs: one file for programs, one page to print",
		Long: `Disclose verifies a finished run against its ledger and writes disclosure.json and disclosure.html:
whom the run protects against whom, what it and the dataset's whole life cost, what is not covered, how good
the model is, and what people stated about purpose and data. It reads no data.

What only a person knows comes from the block disclosure of the spec, and from author and source of the schema. The
files say "not stated" for the rest. --strict refuses that, a program without a version, a dataset without a
lifetime budget and a reviewer who is the operator (exit code 2); without it, they are warnings on the page. --spec FILE takes the statements
of another spec and its schema, for a run whose own have none or are wrong.

--sign KEY signs both files as ssh-keygen does (Ed25519). Files that exist stay as they are: a correction
goes to another file and names the one that it replaces by --supersedes.`,
		Example: `  sotto disclose runs/20261120-154800-0a1b2c3d --strict --sign ~/.ssh/id_ed25519
  ssh-keygen -Y check-novalidate -n file -s disclosure.json.sig < disclosure.json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: q.run,
	}
	c.Flags().StringVar(&q.out, "out", "", "file to write; the page stands beside it (default: RUN/"+disclosure.File+")")
	c.Flags().StringVar(&q.where, "ledger", "", "the ledger of the run (default: the one in which it was reserved)")
	c.Flags().StringVar(&q.spec, "spec", "", "take the statements of people from this spec and its schema")
	c.Flags().BoolVar(&q.strict, "strict", false, "refuse what the page would warn of, and where something is not stated")
	c.Flags().BoolVar(&q.privateOnly, "private-only", false, "leave out exact figures of test rows")
	c.Flags().StringVar(&q.keyFile, "sign", "", "sign with this Ed25519 key of OpenSSH")
	c.Flags().StringVar(&q.supersedes, "supersedes", "", "the disclosure that this one corrects")
	return c
}

// discloseFlags say of what to make a disclosure, and where to write it.
type discloseFlags struct {
	where, out, spec, supersedes, keyFile string
	strict, privateOnly                   bool
}

func (q *discloseFlags) run(c *cobra.Command, args []string) error {
	dir := args[0]
	if q.out == "" {
		q.out = filepath.Join(dir, disclosure.File)
	}
	if filepath.Ext(q.out) != ".json" {
		return usageError("--out: found %q; give a name that ends with .json, beside which the page ends with .html", q.out)
	}
	files := []string{q.out, disclosure.PageOf(q.out)}
	for _, f := range files {
		for _, name := range []string{f, f + disclosure.SignatureSuffix} {
			if _, err := os.Lstat(name); err == nil {
				return usageError("%s exists, and a disclosure is not overwritten; write a correction to another file: --out FILE --supersedes %s", name, q.out)
			}
		}
	}
	o := disclosure.Options{Made: program(), Supersedes: q.supersedes, PrivateOnly: q.privateOnly}
	sign := func([]byte) ([]byte, error) { return nil, nil }
	if q.keyFile != "" {
		key, err := disclosure.ReadKey(q.keyFile)
		if err != nil {
			return inputOf(err)
		}
		sign = func(text []byte) ([]byte, error) { return disclosure.Sign(key, text) }
		o.Made.Signer = ssh.FingerprintSHA256(key.PublicKey())
	}
	if q.spec != "" {
		s, err := run.LoadSpec(q.spec, nil)
		if err != nil {
			return err
		}
		o.Later = &disclosure.Later{SpecFile: q.spec}
		if s.Disclosure != nil {
			o.Later.Statements = *s.Disclosure
		}
		if o.Later.Schema, err = data.LoadSchema(s.Schema); err != nil {
			return usageError("%v", err)
		}
	}
	d, err := disclose(c.Context(), dir, q.where, o)
	if err != nil {
		return err
	}
	missing := d.Statements.Missing
	if q.strict && len(missing) > 0 {
		return usageError("--strict: not stated: %s; write them into the spec and the schema, or name a spec that has them by --spec", strings.Join(missing, ", "))
	}
	warnings := d.Warnings()
	if q.strict && len(warnings) > 0 {
		return usageError("--strict: %s", strings.Join(warnings, " "))
	}
	text, err := d.Marshal()
	if err != nil {
		return err
	}
	page, err := d.Render(text)
	if err != nil {
		return err
	}
	for i, b := range [][]byte{text, page} {
		signature, err := sign(b)
		if err != nil {
			return err
		}
		if err := newfile.ReplaceShared(files[i], b); err != nil {
			return usageError("--out: %v", err)
		}
		fmt.Fprintln(c.OutOrStdout(), files[i])
		if signature == nil {
			continue
		}
		if err := newfile.ReplaceShared(files[i]+disclosure.SignatureSuffix, signature); err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), files[i]+disclosure.SignatureSuffix)
	}
	for _, w := range warnings {
		fmt.Fprintln(c.OutOrStdout(), "Warning:", w)
	}
	if len(missing) > 0 {
		fmt.Fprintf(c.OutOrStdout(), "Not stated: %s\n", strings.Join(missing, ", "))
	}
	return nil
}

// disclose makes the disclosure of a run that verifies.
func disclose(ctx context.Context, dir, where string, o disclosure.Options) (*disclosure.Document, error) {
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		return nil, &run.InputError{Err: err}
	}
	l, err := run.ViewLedger(ctx, cmp.Or(where, info.Ledger))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	found, err := party.Verify(ctx, dir, l)
	if err != nil {
		return nil, err
	}
	if err := record.NewVerdict(found, true).Err(dir); err != nil {
		return nil, fmt.Errorf("%w; `sotto verify %s --ledger %s` shows why", err, dir, l.Where())
	}
	d, err := disclosure.Make(ctx, dir, l, o)
	return d, inputOf(err)
}

// inputOf makes what a person gave wrongly end with exit code 2.
func inputOf(err error) error {
	var input *disclosure.InputError
	if errors.As(err, &input) {
		return &run.InputError{Err: err}
	}
	return err
}

// program describes this program, for a disclosure that it makes or checks.
func program() disclosure.Made {
	b := runlog.ThisBuild()
	m := disclosure.Made{At: time.Now().UTC().Format(time.RFC3339), Version: b.Version, Commit: b.Commit, Go: b.Go,
		Platform: b.Platform, Kernels: b.Kernels, Binary: runlog.Binary()}
	return m
}
