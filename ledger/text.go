package ledger

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
)

// WriteDatasets writes a table of datasets for people.
func (l *Ledger) WriteDatasets(w io.Writer, all []Dataset) error {
	if len(all) == 0 {
		fmt.Fprintf(w, "%s holds no dataset yet\n", l.Where())
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DATASET\tADJACENCY\tCURRENCY\tRUNS\tRESERVED ε\tRESERVED δ\tBUDGET ε\tBUDGET δ\tNOTE")
	for _, d := range all {
		budget, note, reserved := "-\t-", "", chart.Full(d.Spent.Epsilon)+"\t"+chart.Full(d.Spent.Delta)
		if d.Budget != nil {
			budget = chart.Full(d.Budget.Epsilon) + "\t" + chart.Full(d.Budget.Delta)
		}
		if d.Part != nil { // no ε of its own adds up
			reserved, note = "-\t-", Percent(*d.Part)+" held or settled"
		}
		if d.Sharing != nil {
			note = strings.TrimPrefix(note+"; ε against "+text.Against(d.Sharing.Colluders)+": see its statement", "; ")
		}
		if d.Void != nil {
			note = "void: accessed without a guarantee"
		}
		if len(d.Restored) > 0 {
			note = strings.TrimPrefix(note+"; restored, charges are missing", "; ")
		}
		adjacency := "-"
		if d.Adjacency.Valid() { // otherwise nothing but an access is recorded
			adjacency = d.Adjacency.String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", d.Name, adjacency, cmp.Or(d.Currency, "-"), d.Runs, reserved, budget,
			note)
	}
	return t.Flush()
}

// Write writes a dataset's statement and its entries for people.
func (d Dataset) Write(w io.Writer, entries []Entry) error {
	facts := "not entered: unit, neighboring relation and currency are open"
	if d.Unit != "" {
		facts = fmt.Sprintf("unit %s, %v, currency %s", d.Unit, d.Adjacency, d.Currency)
	}
	fmt.Fprintf(w, "%s: %s\n%s\n\n", d.Name, facts, d.Statement)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SEQ\tTIME\tKIND\tRUN\tWHAT")
	for _, e := range entries {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", e.Seq, e.Time.Format("2006-01-02 15:04:05"), e.Kind, e.Run, e.Words())
	}
	return t.Flush()
}

// WriteForecasts writes for people how many more runs like r the dataset's budget covers.
func (d Dataset) WriteForecasts(w io.Writer, r Reservation, all []Forecast) error {
	fmt.Fprintf(w, "%s: lifetime budget %v, runs so far: %d. A run like this one has the budget %v%s.\n\n", d.Name,
		*d.Budget, d.Runs, Caps{r.Epsilon, r.Delta}, sharedWords(r.Shares))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CURRENCY\tMORE RUNS\tNOTE")
	for _, f := range all {
		runs, note := fmt.Sprint(f.Runs), f.Why
		if f.Currency == InCaps {
			note = "basic composition"
		}
		switch {
		case f.Why != "":
			runs = "-"
		case f.More:
			runs += " or more"
		}
		if f.Own {
			note = strings.TrimSuffix("this dataset's currency; "+note, "; ")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Currency, runs, note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w,
		"\nEach run counts with its whole plan. In the other currencies earlier runs count by their own ε and δ. A dataset keeps its\ncurrency: these numbers show what another would have covered in what is left.")
	return err
}

// Settled says in words what a settled run of the dataset leaves spent.
func (d Dataset) Settled(r Run) string {
	head := fmt.Sprintf("run %s on %s is settled", r.ID, r.Dataset)
	if d.Part == nil {
		return fmt.Sprintf("%s; %s of ε and %s of δ stay spent%s", head, chart.Full(r.Caps.Epsilon),
			chart.Full(r.Caps.Delta), sharedWords(r.Shares))
	}
	cost := "for what it charged"
	switch r.Settlement.Basis {
	case BasisMismatch:
		cost = "for its whole plan, since its directory does not show the events that this ledger recorded"
	case BasisPlan:
		cost = "for its whole plan, since this ledger holds no full record of the events"
	}
	return fmt.Sprintf("%s %s; %s of the lifetime budget is held or settled", head, cost, Percent(*d.Part))
}
