package cli

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/run/disclosure"
	"github.com/sottodp/sotto/run/ledger"
)

func verifyCommand() *cobra.Command {
	var where, file, signer string
	var asJSON, claim, void bool
	c := &cobra.Command{
		Use:   "verify DIR [DIR...]",
		Short: "Check a finished run from its files alone",
		Long: `Verify reads a finished run directory and no data. It checks that all files are as the run left them, that the
charges follow the plan and fit the budget, that every release was charged, and that the method, replayed from the
releases, gives the model. With --ledger it also checks the reservation, the settlement and the hashes of all files in that
ledger. Without it, a person who can write the directory can write files that fit each other.

Of the directory of a private evaluation (sotto evaluate) it checks that the figures follow from the noisy answers, and
that what was asked costs no more than what was charged.

For an owner's run directory (sotto node) it checks that each published vector follows from what the owner charged and
from what its peers sent. It cannot compute the model, the mean over all owners. In a network of mode sum it checks that
each release is what the sums in the directory give. With the directories of more owners of that network it also compares
their sums; with those of all it adds up their masked parts again, and so finds a hub that added otherwise.

--disclosure FILE checks a disclosure (sotto disclose) against the run, and against the ledger up to the entry that the
disclosure names; without --ledger against the ledger of the run, if that is at hand. If FILE.sig is there, it checks the
signature, and with --signer KEY.pub that this key signed.

--claim is for lab runs of second-order methods: it computes the claimed bounds from the rows, without noise. The
ledger records this access; if the dataset has a guarantee, the access needs --void.

Exit code 0: all holds; 1: something does not.`,
		Example: "  sotto verify runs/20261120-154800-0a1b2c3d",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			// A run with a different event in every batch has a large ledger entry, held in several forms at
			// once: collecting early lowers the peak from 365 MB to below 300.
			defer debug.SetGCPercent(debug.SetGCPercent(25))
			var key ssh.PublicKey
			if signer != "" {
				var err error
				if key, err = disclosure.ReadSigner(signer); err != nil {
					return inputOf(err)
				}
				if file == "" {
					return usageError("--signer is for --disclosure, which is missing")
				}
			}
			var l *ledger.Ledger
			if where != "" {
				var err error
				if l, err = run.ViewLedger(c.Context(), where); err != nil {
					return err
				}
				defer l.Close()
			} else if file != "" {
				place, err := disclosure.Where(args[0], "")
				if err != nil {
					return inputOf(err)
				}
				if l, err = run.ViewLedger(c.Context(), place); err == nil { // otherwise what it would show is not checked
					defer l.Close()
				} else if l = nil; !as[*run.InputError](err) {
					return err
				}
			}
			verify := party.Verify
			if run.IsEvaluation(args[0]) {
				verify = run.VerifyEvaluation
			}
			found, err := verify(c.Context(), args[0], l)
			if err != nil {
				return err
			}
			if len(args) > 1 {
				f, err := party.VerifySums(args...)
				if err != nil {
					return err
				}
				found = append(found, f)
			}
			if claim {
				f, err := run.VerifyClaim(c.Context(), args[0], where, void)
				if errors.Is(err, access.ErrWouldEnd) {
					return fmt.Errorf("%w. --void accesses the rows anyway", err)
				}
				if err != nil {
					return err
				}
				found = append(found, f)
			}
			if file != "" {
				more, err := disclosure.Check(c.Context(), args[0], l, file, key, program())
				if err != nil {
					return inputOf(err)
				}
				for _, f := range more {
					found = append(found, run.Finding(f))
				}
			}
			v := run.NewVerdict(found, l != nil)
			if err := answer(c, asJSON, v, nil); err != nil {
				return err
			}
			return v.Err(args[0])
		},
	}
	c.Flags().StringVar(&where, "ledger", "", "also check what this ledger knows of the run")
	c.Flags().StringVar(&file, "disclosure", "", "also check this disclosure of the run")
	c.Flags().StringVar(&signer, "signer", "", "with --disclosure: the public key that must have signed it")
	c.Flags().BoolVar(&claim, "claim", false, "lab runs: compute the claimed bounds from the rows")
	c.Flags().BoolVar(&void, "void", false, "with --claim: "+voids)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
