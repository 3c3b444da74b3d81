package report

import (
	"html/template"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// A Fact is a name and its value, for another page about a run (package run/disclosure).
type Fact = fact

// NotCovered lists what the guarantee of a run does not cover.
func NotCovered(info *runlog.Info) []Fact { return notCovered(info) }

// Asserted says in words what a person asserted by those names.
func Asserted(names []string) []string { return asserted(names) }

// Change says how far one record can change the probability of any set of outcomes.
func Change(b privacy.Budget) string { return change(b, exact) }

// Exact writes a number that a person chose with all its digits.
func Exact(v float64) string { return exact(v) }

// Released lists what a run released: numbers of equal batches, each with what one is in words, of a long list the
// first lines; more counts the others.
func Released(rec *runlog.Record) (lines []Fact, more int) { return released(rec) }

// Terms says which noise a plan has, and which records its steps use.
func Terms(plan privacy.Event) (noise, sampling string) { return terms(plan) }

// PlotTradeOff draws what any attack can reach.
func PlotTradeOff(curve *account.TradeOff, b privacy.Budget) template.HTML {
	svg, _ := plotTradeOff(curve, b)
	return svg
}
