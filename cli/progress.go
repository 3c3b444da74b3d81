package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/sottodp/sotto/run"
)

// progress shows the progress of a run: a bar on a terminal, plain lines elsewhere. The bar moves the cursor but sets
// no color, so it is the same under NO_COLOR (no-color.org).
type progress struct {
	w     io.Writer
	quiet bool
	name  string // of the bar
	bars  *mpb.Progress
	bar   *mpb.Bar
	text  atomic.Pointer[string] // the bar's goroutine reads it
	last  time.Time
}

const lineEvery = 5 * time.Second // between plain lines

func newProgress(w io.Writer, quiet bool) *progress {
	return &progress{w: w, quiet: quiet, name: "training ", last: time.Now()}
}

// watch receives a run's progress; it is nil if the progress is not shown, so that nothing is computed for it.
func (p *progress) watch() func(run.Progress) {
	if p.quiet {
		return nil
	}
	return p.update
}

func (p *progress) update(u run.Progress) {
	text := fmt.Sprintf("ε %s, %s left", atMost(u.Epsilon, 3), u.Left.Round(time.Second))
	if math.IsInf(u.Epsilon, 1) {
		text = fmt.Sprintf("no noise, %s left", u.Left.Round(time.Second))
	}
	p.show(u.Step, u.MaxSteps, text, fmt.Sprintf("step %s of %s, %s", count(u.Step), count(u.MaxSteps), text))
}

// show sets the bar, followed by text (empty: the estimated time left), or prints the line if there is no terminal.
func (p *progress) show(done, all int, text, line string) {
	if p.quiet {
		return
	}
	p.text.Store(&text)
	if f, ok := p.w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		if line != "" && time.Since(p.last) >= lineEvery {
			p.last = time.Now()
			fmt.Fprintln(p.w, line)
		}
		return
	}
	if p.bar == nil {
		behind := []decor.Decorator{decor.Any(func(decor.Statistics) string { return *p.text.Load() })}
		if text == "" {
			behind = []decor.Decorator{decor.AverageETA(decor.ET_STYLE_GO), decor.Name(" left")}
		}
		p.bars = mpb.New(mpb.WithOutput(p.w), mpb.WithWidth(60))
		p.bar = p.bars.AddBar(int64(all), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(p.name), decor.CountersNoUnit("%d/%d")), mpb.AppendDecorators(behind...))
	}
	p.bar.SetCurrent(int64(done))
}

func (p *progress) done() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}
