package disclosure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// Check compares the disclosure in a file with the run in dir and, if l is not nil, with the ledger, and checks its
// signature. If signer is not nil, the signature must be there and of this key. The caller verifies the run itself. An
// error means that a file cannot be read.
func Check(ctx context.Context, dir string, l *ledger.Ledger, file string, signer ssh.PublicKey,
	program Made) ([]record.Finding, error) {
	d, text, err := Read(file)
	if err != nil {
		return nil, err
	}
	r, err := read(dir)
	if err != nil {
		return nil, err
	}
	again, curve, err := r.facts(d.Facts.PrivateOnly)
	if err != nil {
		return nil, err
	}
	var found []record.Finding
	say := func(what string, holds bool, format string, args ...any) {
		found = append(found, record.Finding{What: what, Holds: holds, Detail: fmt.Sprintf(format, args...)})
	}

	was := d.Facts
	if d.Made.Binary != program.Binary {
		again.earlier(&was)
	}
	prose := ""
	if d.Made.Version != program.Version || d.Made.Platform != program.Platform || d.Made.Kernels != program.Kernels {
		tolerate(&again, &was)
		prose = fmt.Sprintf(" (it was made by Sotto %s on %s: its explanations are taken as they are, and figures of an accountant to a thousandth)", d.Made.Version, d.Made.Platform)
	}
	was.Lifetime, again.Lifetime = record.Lifetime{}, record.Lifetime{}
	other, err := differing(was, again)
	if err != nil {
		return nil, err
	}
	if len(other) > 0 {
		say("disclosure", false, "does not follow from the run directory: %s%s", runlog.Some(other), prose)
	} else {
		say("disclosure", true, "every fact of %s is what the run directory gives%s", filepath.Base(file), prose)
	}

	if l == nil {
		found = append(found,
			record.Finding{What: "lifetime", Holds: true, Skipped: true,
				Detail: "not checked: there is no ledger at hand; --ledger PLACE names one"})
	} else if err := r.checkLifetime(ctx, l, d, program, say); err != nil {
		return nil, err
	}

	same, err := r.same(d.Statements)
	if err != nil {
		return nil, err
	}
	from := "as the spec and the schema of the run have them"
	if d.Statements.From == FromLater {
		from = "given after the run; they follow from nothing, and are taken as they are"
	}
	say("statements", same, "of people, %s; %d are not stated", from, len(d.Statements.Missing))
	d.curve = curve
	found = append(found, r.made(d, program), signature("signature", file, text, d.Made.Signer, signer))
	if d.Supersedes != nil {
		found = append(found,
			record.Finding{What: "supersedes", Holds: true, Skipped: true,
				Detail: "not checked: the disclosure that this one corrects is named by its hash, and not given"})
	}
	return append(found, checkPage(d, file, text, signer, program)...), nil
}

// made checks when and by which program the disclosure says it was made.
func (r *finished) made(d *Document, program Made) record.Finding {
	f := record.Finding{What: "made", Holds: true}
	m := d.Made
	at, err := time.Parse(time.RFC3339, m.At)
	var wrong []string
	if err != nil || at.Before(r.info.Finished.Truncate(24*time.Hour)) {
		wrong = append(wrong, "at")
	}
	if m.Binary == "" || m.Binary != program.Binary {
		f.Skipped, f.Detail = true,
			"not checked: another program than this one made it, so what it says of itself is taken as it is: version, commit, go, platform, kernels, binary, and the time of the day"
	} else {
		for _, x := range []struct{ name, was, is string }{{"version", m.Version, program.Version},
			{"commit", m.Commit, program.Commit},
			{"go", m.Go, program.Go}, {"platform", m.Platform, program.Platform}} {
			if x.was != x.is {
				wrong = append(wrong, x.name)
			}
		}
		f.Detail = "by this program, with its version, commit, Go and platform, and not before the day of the run; the time of the day and kernels are taken as they are"
	}
	if len(wrong) > 0 {
		return record.Finding{What: "made",
			Detail: "does not fit the run, or this program, whose hash it has: " + strings.Join(wrong, ", ")}
	}
	return f
}

func (r *finished) checkLifetime(ctx context.Context, l *ledger.Ledger, d *Document, program Made,
	say func(string, bool, string, ...any)) error {
	was := d.Facts.Lifetime
	upTo := ledger.Head(was.Head)
	again, err := r.lifetime(ctx, l, &upTo)
	var broken *ledger.ChainError
	var input *InputError
	if errors.As(err, &broken) || errors.As(err, &input) || errors.Is(err, ledger.ErrUnknownDataset) {
		say("lifetime", false, "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if was.Lasts == "" && d.Made.Binary != program.Binary { // of an earlier version
		again.Lasts, again.Left, again.More = "", nil, nil
	}
	other, err := differing(was, again)
	if err != nil {
		return err
	}
	if len(other) > 0 {
		say("lifetime", false, "does not follow from %s up to entry %d: %s", l.Where(), upTo.Seq, runlog.Some(other))
		return nil
	}
	now, err := r.lifetime(ctx, l, nil)
	if err != nil {
		return err
	}
	since := "nothing changed since"
	if runs, accesses := len(now.Runs)-len(was.Runs), len(now.Unprotected)-len(was.Unprotected); runs > 0 ||
		accesses > 0 || !reflect.DeepEqual(now.Total, was.Total) {
		since = fmt.Sprintf("since then the ledger has recorded %d more runs and %d more accesses without protection on this dataset; make a new disclosure to state them", runs, accesses)
	}
	say("lifetime", true, "as %s has it up to entry %d; %s", l.Where(), upTo.Seq, since)
	return nil
}

// earlier removes fields that a disclosure of an earlier version lacks.
func (f *Facts) earlier(was *Facts) {
	if was.Guarantee.Guess == 0 {
		f.Guarantee.Guess, f.Guarantee.GuessPair, f.Guarantee.DeltaRows = 0, 0, 0
		f.Public.Rows = 0
	}
}

// tolerate copies from a disclosure of another version or platform what may differ: prose, and last digits.
func tolerate(again, was *Facts) {
	again.NotCovered = was.NotCovered
	p, q := &again.Protection, &was.Protection
	p.Neighbors, p.TrustModel, p.Trusted, p.Adversary, p.Outcome = q.Neighbors, q.TrustModel, q.Trusted, q.Adversary,
		q.Outcome
	g, h := &again.Guarantee, &was.Guarantee
	g.Words, g.Noise, g.Sampling, g.Theorems, g.NoGDP = h.Words, h.Noise, h.Sampling, h.Theorems, h.NoGDP
	if len(g.Released) == len(h.Released) {
		for i := range g.Released {
			g.Released[i].What = h.Released[i].What
		}
	}
	near := func(a *float64, b float64) {
		if math.Abs(*a-b) <= 1e-3*math.Abs(*a)+1e-12 {
			*a = b
		}
	}
	near(&g.PlanEpsilon, h.PlanEpsilon)
	near(&g.Guess, h.Guess)
	if s, t := g.Shares, h.Shares; s != nil && t != nil {
		s.Against, s.AgainstAll, s.Trusted = t.Against, t.AgainstAll, t.Trusted
		// a guarantee: no less is said
		if s.EpsilonAlone != nil && t.EpsilonAlone != nil && *s.EpsilonAlone >= *t.EpsilonAlone*(1-1e-9) {
			near(s.EpsilonAlone, *t.EpsilonAlone)
		}
	}
	if g.GDP != nil && h.GDP != nil {
		near(&g.GDP.Mu, h.GDP.Mu)
		near(&g.GDP.Outside, h.GDP.Outside)
		if math.Abs(g.GDP.Mu+g.GDP.Regret-h.GDP.Mu-h.GDP.Regret) <= 1e-3*(g.GDP.Mu+g.GDP.Regret) {
			g.GDP.Regret = h.GDP.Regret
		}
	}
	if len(g.Attacks) == len(h.Attacks) {
		g.Attacks = slices.Clone(g.Attacks)
		for i := range g.Attacks {
			near(&g.Attacks[i].TruePositives, h.Attacks[i].TruePositives)
		}
	}
	again.Public.Asserted = was.Public.Asserted
}

// differing are the paths at which two values differ as JSON.
func differing(a, b any) ([]string, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	y, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return runlog.Differing(x, y)
}

// checkPage checks the page beside the file, if there is one: that the file gives it, and its
// signature if it has one or the file says that it was signed.
func checkPage(d *Document, file string, text []byte, signer ssh.PublicKey, program Made) []record.Finding {
	name := PageOf(file)
	shown, err := readfile.All(name, readfile.Page)
	if err != nil {
		return nil // there is none to read
	}
	f := record.Finding{What: "page", Holds: true, Detail: filepath.Base(name) + " is the page of " + filepath.Base(file)}
	again, err := d.Render(text)
	switch {
	case err != nil:
		f.Holds, f.Detail = false, err.Error()
	case bytes.Equal(shown, again):
	case d.Made.Binary != "" && d.Made.Binary == program.Binary:
		f.Holds, f.Detail = false,
			filepath.Base(name)+" is not the page that this program, which made it, makes of "+filepath.Base(file)
	default:
		f.Skipped, f.Detail = true,
			fmt.Sprintf("not checked: %s is not the page that this program makes of %s; it was changed, or another build made it", filepath.Base(name), filepath.Base(file))
	}
	if _, err := readfile.All(name+SignatureSuffix, readfile.Short); errors.Is(err, fs.ErrNotExist) {
		if d.Made.Signer == "" {
			return []record.Finding{f} // a person may sign the file alone
		}
		signer = nil // the finding names the key that it asks for
	}
	return []record.Finding{f, signature("signature", name, shown, d.Made.Signer, signer)}
}

// signature checks the signature of a file. named is the fingerprint in the disclosure and signer
// the caller's key; either may be empty, and any that is given must have signed.
func signature(what, file string, text []byte, named string, signer ssh.PublicKey) record.Finding {
	armored, err := readfile.All(file+SignatureSuffix, readfile.Short)
	switch {
	case errors.Is(err, fs.ErrNotExist) && named != "":
		return record.Finding{What: what,
			Detail: fmt.Sprintf("%s is not there, and the disclosure says that key %s signed it",
				filepath.Base(file)+SignatureSuffix, named)}
	case errors.Is(err, fs.ErrNotExist) && signer == nil:
		return record.Finding{What: what, Holds: true, Skipped: true,
			Detail: "not checked: " + filepath.Base(file) + " is not signed, so nothing shows who made it"}
	case errors.Is(err, fs.ErrNotExist):
		return record.Finding{What: what,
			Detail: fmt.Sprintf("%s is not there, and --signer asks for it", filepath.Base(file)+SignatureSuffix)}
	case err != nil:
		return record.Finding{What: what, Detail: err.Error()}
	}
	key, err := CheckSignature(armored, text)
	switch {
	case err != nil:
		return record.Finding{What: what, Detail: fmt.Sprintf("%s: %v", filepath.Base(file)+SignatureSuffix, err)}
	case named != "" && ssh.FingerprintSHA256(key) != named:
		return record.Finding{What: what,
			Detail: fmt.Sprintf("%s is signed by key %s, and the disclosure says by %s", filepath.Base(file),
				ssh.FingerprintSHA256(key), named)}
	case signer != nil && !bytes.Equal(key.Marshal(), signer.Marshal()):
		return record.Finding{What: what,
			Detail: fmt.Sprintf("%s is signed by key %s, not by %s", filepath.Base(file), ssh.FingerprintSHA256(key),
				ssh.FingerprintSHA256(signer))}
	case signer != nil:
		return record.Finding{What: what, Holds: true,
			Detail: fmt.Sprintf("%s is signed by key %s", filepath.Base(file), ssh.FingerprintSHA256(key))}
	}
	return record.Finding{What: what, Holds: true,
		Detail: fmt.Sprintf("%s is signed by key %s; whose it is, --signer KEY.pub compares", filepath.Base(file),
			ssh.FingerprintSHA256(key))}
}

// PageOf is the page beside the file of a disclosure.
func PageOf(file string) string { return strings.TrimSuffix(file, filepath.Ext(file)) + ".html" }
