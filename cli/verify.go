package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/page/disclosure"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/describe"
	"github.com/sottodp/sotto/run/runlog"
)

func verifyCommand() *cobra.Command {
	var q verifyFlags
	c := &cobra.Command{
		Use:   "verify DIR [DIR...]",
		Short: "Check a finished run from its files alone",
		Long: `Verify reads a finished run directory and no data. It checks that the charges follow the plan and fit the budget, that
every release was charged, and that the method, replayed from the releases, gives the model. In the ledger that the run
names, if it is at hand, it also checks the reservation, the settlement and the hashes of all files; --ledger PLACE names one
that you trust. Without a ledger, a person who can write the directory can write files that fit each other, and the report
is compared with the page that this program makes, which another build may make differently. What was not checked is named.

For the directory of a private evaluation (sotto evaluate) or of private statistics (sotto describe) it checks that the
figures follow from the noisy answers, and that what was asked costs no more than what was charged.

For an owner's run directory (sotto node) it checks that each published vector follows from what the owner charged and
from what its peers sent. It cannot compute the model, the mean over all owners. In a network of mode sum it checks that
each release is what the sums in the directory give. With the directories of more owners of that network it also compares
their sums; with those of all it adds up their masked parts again, which exposes a hub that added them wrongly.

--disclosure FILE checks a disclosure (sotto disclose) against the run, and against the ledger up to the entry that the
disclosure names. If FILE.sig is there, it checks the
signature, and with --signer KEY.pub that this key signed. A file that says who signed it must have that signature.

--claim is for lab runs of second-order methods: it computes the claimed bounds from the rows, without noise. The
ledger records this access; if the dataset has a guarantee, the access needs --void.

Exit code 0: all holds; 1: something does not.`,
		Example: "  sotto verify runs/20261120-154800-0a1b2c3d",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE:    q.run,
	}
	c.Flags().StringVar(&q.where, "ledger", "",
		"the ledger that is asked (default: the one that the run names, if it is at hand)")
	c.Flags().StringVar(&q.file, "disclosure", "", "also check this disclosure of the run")
	c.Flags().StringVar(&q.signer, "signer", "", "with --disclosure: the public key that must have signed it")
	c.Flags().BoolVar(&q.claim, "claim", false, "lab runs: compute the claimed bounds from the rows")
	c.Flags().BoolVar(&q.void, "void", false, "with --claim: "+voids)
	c.Flags().BoolVar(&q.asJSON, "json", false, "print one JSON object")
	return c
}

// verifyFlags say what sotto verify checks, and by which ledger.
type verifyFlags struct {
	where, file, signer string
	asJSON, claim, void bool
}

func (q *verifyFlags) run(c *cobra.Command, args []string) error {
	// A run with a different event in every batch has a large ledger entry, held in several forms at
	// once: collecting early lowers the peak from 365 MB to below 300.
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	var key ssh.PublicKey
	if q.signer != "" {
		var err error
		if key, err = disclosure.ReadSigner(q.signer); err != nil {
			return inputOf(err)
		}
		if q.file == "" {
			return usageError("--signer is for --disclosure, which is missing")
		}
	}
	var l *ledger.Ledger
	var without string
	var err error
	if q.where != "" {
		l, err = run.ViewLedger(c.Context(), q.where)
	} else {
		l, without, err = run.OwnLedger(c.Context(), args[0])
	}
	if err != nil {
		return err
	}
	if l != nil {
		defer l.Close()
	}
	verify := party.Verify
	switch {
	case run.IsEvaluation(args[0]):
		verify = run.VerifyEvaluation
	case run.IsDescription(args[0]):
		verify = describe.Verify
	}
	found, err := verify(c.Context(), args[0], l)
	if err != nil {
		return err
	}
	sealed := false
	for i := range found {
		f := &found[i]
		if f.Skipped && f.What == "ledger" && without != "" {
			f.Detail += "; " + without
		}
		sealed = sealed || f.What == "seal" && !f.Skipped
	}
	if !sealed {
		found = append(found, reportOf(args[0])...)
	}
	if len(args) > 1 {
		f, err := party.VerifySums(args...)
		if err != nil {
			return err
		}
		found = append(found, f)
	}
	if q.claim {
		f, err := run.VerifyClaim(c.Context(), args[0], q.where, q.void)
		if errors.Is(err, access.ErrWouldEnd) {
			return fmt.Errorf("%w. --void accesses the rows anyway", err)
		}
		if err != nil {
			return err
		}
		found = append(found, f)
	}
	if q.file != "" {
		more, err := disclosure.Check(c.Context(), args[0], l, q.file, key, program())
		if err != nil {
			return inputOf(err)
		}
		found = append(found, more...)
	}
	v := record.NewVerdict(found, l != nil)
	if err := answer(c, q.asJSON, v, nil); err != nil {
		return err
	}
	return v.Err(args[0])
}

// reportOf checks the report of a run of which no ledger holds a seal. A network's owner and an evaluation have none.
func reportOf(dir string) []record.Finding {
	info, err := runlog.ReadInfo(dir)
	if err != nil || info.Network != "" {
		return nil
	}
	f := record.Finding{What: runlog.ReportFile, Holds: true}
	same, err := page.Compare(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Skipped, f.Detail = true, "not checked: it is not there; a ledger's seal would show whether the run wrote it"
	case err != nil:
		f.Skipped, f.Detail = true, fmt.Sprintf("not checked: %v", err)
	case same:
		f.Detail = "this program makes the same page from the other files; what it says of the dataset's whole life only the ledger gives"
	case runlog.SameBuild(info):
		f.Holds, f.Detail = false, "it was changed: this program, which made the run, makes another page from the other files"
	default:
		f.Skipped, f.Detail = true,
			fmt.Sprintf("not checked: it is not the page that this program makes; it was changed, or Sotto %s, which made it, is another build", info.Version)
	}
	return []record.Finding{f}
}
