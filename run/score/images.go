package score

import (
	"io"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

const exampleRows = 8 // of each kind

// Examples are the first images of a test table and the first that the model gets wrong; none if the rows
// are not images, have more than one number for each pixel, or are not pixels.
func Examples(j *job.Job, w []float64, t *data.Table) []runlog.Example {
	image, classes := j.Schema.Image, j.Schema.ClassNames()
	if image == nil || image.Encode != "" || len(image.Shape) != 2 || t.Classes == 0 || !j.Model.Facts().Probabilities {
		return nil
	}
	var first, wrong []runlog.Example
	outputs := Predictor{Model: j.Model, W: w}
	for _, b := range t.Blocks {
		row := -1
		err := outputs.Block(b, func(p []float64, label float32) error {
			if row++; p == nil {
				return nil
			}
			guess := model.Decide(p, j.Spec.Model.Threshold, classes)
			e := runlog.Example{Width: image.Shape[1], Class: classes[int(label)], Guess: classes[guess], Confidence: p[guess]}
			switch {
			case len(first) < exampleRows:
				e.Pixels = gray(b, row)
				first = append(first, e)
			case guess != int(label) && len(wrong) < exampleRows:
				e.Pixels = gray(b, row)
				wrong = append(wrong, e)
			}
			if len(first) == exampleRows && len(wrong) == exampleRows {
				return io.EOF
			}
			return nil
		})
		if err != nil { // enough
			break
		}
	}
	return append(first, wrong...)
}

// gray returns a row as bytes, scaled from its least value to its largest.
func gray(b *data.Block, row int) []byte {
	var memory []float32
	values := b.Dense(row, &memory)
	least, most := slices.Min(values), slices.Max(values)
	pixels := make([]byte, b.Dim)
	for i, v := range values {
		if most > least {
			pixels[i] = byte(255 * (v - least) / (most - least))
		}
	}
	return pixels
}
