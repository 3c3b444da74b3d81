package model

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/internal/kern"
)

// A window of height×width pixels moves over an image, so many pixels down and right at a time, from pad pixels outside of it
// on; what lies outside is 0.
type window struct {
	image         shape
	height, width int
	down, right   int
	pad           int
}

// parseWindow reads "8x8", then "stride 2" and "pad 3" in any order, and returns the words that are left. Without a
// stride it is the given one, or for 0 the window itself.
func parseWindow(words []string, image shape, stride int) (w window, rest []string, err error) {
	w = window{image: image, down: stride, right: stride}
	if w.height, w.width, err = sizes(words[0]); err != nil {
		return w, nil, err
	}
	if stride == 0 {
		w.down, w.right = w.height, w.width
	}
	words = words[1:]
	for len(words) >= 2 && (words[0] == "stride" || words[0] == "pad") {
		if words[0] == "stride" {
			w.down, w.right, err = sizes(words[1])
		} else {
			w.pad, err = size(words[1], 0)
		}
		if err != nil {
			return w, nil, err
		}
		words = words[2:]
	}
	if w.height > image.height+2*w.pad || w.width > image.width+2*w.pad {
		return w, nil, fmt.Errorf("a window of %dx%d is larger than the image of %dx%d with %d pixels around it", w.height, w.width, image.height, image.width, w.pad)
	}
	if w.pad >= w.height || w.pad >= w.width {
		return w, nil, fmt.Errorf("pad %d leaves windows of %dx%d without a pixel of the image", w.pad, w.height, w.width)
	}
	return w, words, nil
}

// sizes reads "8x6", or "8" for 8x8.
func sizes(text string) (height, width int, err error) {
	h, v, found := strings.Cut(text, "x")
	if !found {
		v = h
	}
	if height, err = size(h, 1); err != nil {
		return 0, 0, err
	}
	width, err = size(v, 1)
	return height, width, err
}

// size reads a number of pixels, from least to maxWidth.
func size(text string, least int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > maxWidth {
		return 0, fmt.Errorf("%q is no number from %d to %d", text, least, maxWidth)
	}
	return n, nil
}

// places is how many rows and columns of places the window has.
func (w window) places() (rows, cols int) {
	return (w.image.height+2*w.pad-w.height)/w.down + 1, (w.image.width+2*w.pad-w.width)/w.right + 1
}

// taps is the numbers in one window.
func (w window) taps() int { return w.height * w.width * w.image.channels }

// overlap bounds the windows that one pixel lies in.
func (w window) overlap() float64 {
	rows, cols := w.places()
	return float64(min(rows, (w.height+w.down-1)/w.down) * min(cols, (w.width+w.right-1)/w.right))
}

// runs calls f for every row of every window: at is where it lies among the windows, from where in the
// image, n how many of its numbers are inside of the image, and before how many are outside to the left.
// A row outside has n = 0.
func (w window) runs(f func(at, from, n, before int)) {
	rows, cols := w.places()
	c, line := w.image.channels, w.width*w.image.channels
	at := 0
	for y := range rows {
		for x := range cols {
			left := x*w.right - w.pad
			skip, end := max(0, -left), min(w.width, w.image.width-left)
			for k := range w.height {
				if row := y*w.down - w.pad + k; row < 0 || row >= w.image.height {
					f(at, 0, 0, 0)
				} else {
					f(at, (row*w.image.width+left+skip)*c, (end-skip)*c, skip*c)
				}
				at += line
			}
		}
	}
}

// spread copies an image's windows side by side: to has a row of taps for each place.
func spread[T number](w window, to, image []T) {
	line := w.width * w.image.channels
	w.runs(func(at, from, n, before int) {
		row := to[at : at+line]
		if n == 8 && line == 8 {
			*(*[8]T)(row) = *(*[8]T)(image[from:])
			return
		}
		if n < line {
			clear(row)
		}
		copy(row[before:], image[from:from+n])
	})
}

// collect adds windows to the image that they were spread from.
func collect[T number](w window, image, from []T) {
	w.runs(func(at, to, n, before int) {
		if n > 0 {
			kern.Add(image[to:to+n], from[at+before:])
		}
	})
}
