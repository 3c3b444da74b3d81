package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/gossip/pool"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/redact"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
)

// Exit codes.
const (
	exitFailed      = 1   // the machine or the network: disk full, no such server
	exitInput       = 2   // something a person gave is wrong; nothing was changed
	exitBudget      = 3   // the privacy budget does not allow it; nothing was released
	exitInterrupted = 130 // stopped by the user; can be resumed
)

// A failure is one kind of error: its name for programs, which is stable, and its exit code. The texts of errors are
// for people and change.
type failure struct {
	kind string
	code int
	is   func(error) bool
}

// failures lists every kind of error; the first that fits counts. A new kind needs a line here, a class in
// python/sottodp/errors.py and a row in docs/reference/errors.md; TestErrorKinds compares the three.
var failures = []failure{
	{"interrupted", exitInterrupted, is(run.ErrInterrupted, run.ErrNotBegun, context.Canceled)},

	{"content-protected", exitBudget, is(access.ErrProtected)},
	{"cannot-compare", exitBudget, is(access.ErrCannotTell)},
	{"test-overlaps-training", exitBudget, is(access.ErrOverlap)},
	{"ledger-witness", exitBudget, is(ledger.ErrWitness)},
	{"would-end-guarantee", exitBudget, is(access.ErrWouldEnd)},
	{"stale-token", exitBudget, is(ledger.ErrStaleToken)},
	{"behind", exitBudget, is(ledger.ErrBehind, transport.ErrBehind, pool.ErrBehind)},
	{"other-charges", exitBudget, is(ledger.ErrOtherCharges)},
	{"settled", exitBudget, is(ledger.ErrSettled)},
	{"budget-exhausted", exitBudget, is(privacy.ErrExhausted)},

	{"dropped-rows", exitInput, is(run.ErrDroppedRows)},
	{"delta-too-large", exitInput, is(job.ErrLargeDelta)},
	{"not-a-ledger", exitInput, is(ledger.ErrNotLedger)},
	{"bad-data", exitInput, as[*config.Error]},
	{"bad-input", exitInput, func(err error) bool {
		return as[*run.InputError](err) || as[*ledger.MismatchError](err) || as[*readfile.Error](err) ||
			as[*newfile.Error](err) || as[*account.UnsupportedError](err) ||
			as[*transport.PlaceError](err) ||
			is(transport.ErrURL, transport.ErrRefused, transport.ErrStranger, transport.ErrClock)(err)
	}},

	{"failed", exitFailed, func(error) bool { return true }},
}

// is reports errors that wrap any of the sentinels.
func is(sentinels ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(sentinels, func(s error) bool { return errors.Is(err, s) })
	}
}

func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// failureOf returns the kind of err, which is not nil.
func failureOf(err error) failure {
	return failures[slices.IndexFunc(failures, func(f failure) bool { return f.is(err) })] // the last fits every error
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	return failureOf(err).code
}

// kindVariable asks for the kind of an error on a last line in brackets: [budget-exhausted].
const kindVariable = "SOTTO_ERROR_KIND"

// printError writes err for people and, if the environment asks for it, its kind for programs.
func printError(w io.Writer, err error) {
	fmt.Fprintln(w, "sotto:", readable(err.Error()))
	if os.Getenv(kindVariable) != "" {
		fmt.Fprintf(w, "[%s]\n", failureOf(err).kind)
	}
}

// readable is a message without passwords, also where it repeats an argument whose password has spaces.
func readable(text string) string {
	for _, arg := range os.Args[1:] {
		_, value, _ := strings.Cut(arg, "=")
		for _, s := range []string{arg, value} {
			if hidden := redact.Path(s); hidden != s {
				text = strings.NewReplacer(s, hidden, strings.Trim(strconv.Quote(s), `"`), hidden).Replace(text)
			}
		}
	}
	return redact.Text(text)
}
