package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/privacy/account/claimed"
)

// claims are what the papers' own formulas say.
type claims struct {
	NotAGuarantee bool            `json:"not_a_guarantee"` // always true
	Claims        []claimed.Claim `json:"claims"`
}

// thePlan is the value of --claimed without one: what the papers say of the plan.
const thePlan = "plan"

// paperAsked is the paper whose own examples are asked for, empty if it is a plan that is
// asked about. `--claimed p0` reads to the flags as --claimed and a spec named p0.
func (flags *planFlags) paperAsked(c *cobra.Command, args []string) (string, error) {
	if !c.Flags().Changed("claimed") {
		return "", nil
	}
	allowed := append(claimed.Papers(), "all")
	paper := flags.claimed
	if paper == thePlan && len(args) == 1 && slices.Contains(allowed, strings.ToLower(args[0])) {
		paper = args[0]
	}
	if paper == thePlan && len(args) == 1 {
		if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) {
			return "", usageError("--claimed: found %q, which is no spec file; allowed are %s, or a spec", args[0], strings.Join(allowed, ", "))
		}
	}
	if paper == thePlan {
		return "", nil
	}
	if paper = strings.ToLower(paper); !slices.Contains(allowed, paper) {
		return "", usageError("--claimed: found %q; allowed are %s, or nothing beside a plan", flags.claimed, strings.Join(allowed, ", "))
	}
	if given := givenFlags(c.Flags(), slices.Concat(numberFlags, []string{"schema", "epsilon", "delta", "compare", "table", "svg"})); len(given) > 0 {
		return "", usageError("--%s: found beside --claimed %s, which is about the paper's own experiments; for a plan say --claimed alone", given[0], paper)
	}
	return paper, nil
}

// paperClaims are a paper's claims about its own experiments, or all papers'.
func paperClaims(paper string) (*claims, error) {
	list := []string{paper}
	if paper == "all" {
		list = claimed.Papers()
	}
	c := &claims{NotAGuarantee: true}
	for _, p := range list {
		more, err := claimed.Example(p)
		if err != nil {
			return nil, err
		}
		c.Claims = append(c.Claims, more...)
	}
	return c, nil
}

// claim asks what the papers' formulas say of the plan.
func (p *planned) claim() error {
	list, err := claimed.Of(p.event, p.accountant, p.Adjacency, p.Delta)
	p.Claimed = &claims{NotAGuarantee: true, Claims: list}
	return err
}

func (c *claims) print(w io.Writer) {
	if len(c.Claims) == 0 {
		fmt.Fprintln(w, "No formula of the papers speaks of such a plan.")
		return
	}
	fmt.Fprintln(w, "NOT A GUARANTEE. What the papers' own formulas say, beside the sound figure:")
	row := func(name, text string) {
		fmt.Fprintf(w, "  %-10s%s\n", name, strings.ReplaceAll(wrap(text, 104), "\n", "\n            "))
	}
	for _, k := range c.Claims {
		fmt.Fprintf(w, "\n%s, %s: %s\n", k.Paper, k.About, k.Quantity)
		row("claimed", fmt.Sprintf("%.6g (%s)", k.Claimed, k.Formula))
		for i, f := range k.Sound {
			name := ""
			if i == 0 {
				name = "sound"
			}
			value := fmt.Sprintf("%.6g", f.Value)
			if strings.HasPrefix(k.Quantity, "ε") {
				value = atMost(f.Value, 6)
			}
			row(name, fmt.Sprintf("%s (%s)", value, f.By))
		}
		row(string(k.Verdict), fmt.Sprintf("%s. %s", strings.TrimSuffix(k.Why, "."), k.Source))
	}
}
