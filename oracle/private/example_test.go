package private_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/schema"
)

// A journal that prints what is charged, and keeps nothing.
type printer struct{}

func (printer) Charge(e privacy.Event) error { fmt.Println("charged", e); return nil }

func (printer) Release(answers [][]float64) error { fmt.Println("released", len(answers)); return nil }

// The oracle charges first, answers each charged query once, and refuses what the
// budget does not cover. Here the budget covers one gradient.
func Example() {
	ctx := context.Background()
	schema, err := schema.Parse("schema.yaml", []byte(`
dataset: heights
rows: 4
columns:
  - {name: height, type: numeric, min: 50, max: 250}
  - {name: adult, type: label, classes: ["0", "1"]}
`))
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "private")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "heights.csv")
	if err := os.WriteFile(path, []byte("height,adult\n180,1\n90,0\n165,1\n110,0\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	table, _, err := data.Read(ctx, &datatest.Gate{}, schema, path, data.Options{Formats: source.Formats()})
	if err != nil {
		log.Fatal(err)
	}
	logistic, err := model.New("logistic", model.Options{Dim: schema.Dim(), Classes: 2, NormBound: schema.RowNorm})
	if err != nil {
		log.Fatal(err)
	}

	question := oracle.Grad{Clip: clip.Norm{C: 0.5}, Noise: mech.Gaussian{Sigma: 5}}
	budget := privacy.Budget{Epsilon: 1, Delta: 1e-6, Adjacency: privacy.AddRemove}
	meter, err := account.NewPlan(question.Event(), account.GDP{}, budget)
	if err != nil {
		log.Fatal(err)
	}
	o, err := private.New(private.Config{
		Table: table, Model: logistic, Meter: meter, Journal: printer{}, Streams: noise.SecureStreams(),
		Facts: oracle.Public{Dim: schema.Dim(), Rows: 4, Classes: 2, Adjacency: privacy.AddRemove, NormBound: schema.RowNorm},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer o.Close()

	w := make([]float64, schema.Dim())
	batch, err := o.Batch(ctx, sample.Full{}, question)
	if err != nil {
		log.Fatal(err)
	}
	g, err := batch.Grad(question, w)
	fmt.Println(len(g), "noisy numbers", err)
	_, err = batch.Grad(question, w)
	fmt.Println("a second time:", errors.Is(err, oracle.ErrNotCharged))
	_, err = o.Batch(ctx, sample.Full{}, question)
	fmt.Println("another batch:", errors.Is(err, privacy.ErrExhausted))
	// Output:
	// charged Gaussian(σ=5)
	// released 1
	// 2 noisy numbers <nil>
	// a second time: true
	// another batch: true
}
