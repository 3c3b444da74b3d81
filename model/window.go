package model

import (
	"fmt"
	"strconv"
	"strings"
)

// A window of height×width pixels moves over an image in steps of stride pixels. It begins pad pixels outside; pixels
// outside are 0.
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
		return w, nil, fmt.Errorf("a window of %dx%d is larger than the image of %dx%d with %d pixels around it", w.height,
			w.width, image.height, image.width, w.pad)
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

// places is how many rows and columns of positions the window has.
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

// framed is the image with its border of zeros.
func (w window) framed() shape {
	return shape{w.image.height + 2*w.pad, w.image.width + 2*w.pad, w.image.channels}
}

// lines is where each row of each window begins in the framed image, position by position, and how long it is.
func (w window) lines() (from []int32, line int) {
	f := w.framed()
	rows, cols := w.places()
	for y := range rows {
		for x := range cols {
			for k := range w.height {
				from = append(from, int32(((y*w.down+k)*f.width+x*w.right)*f.channels))
			}
		}
	}
	return from, w.width * w.image.channels
}

// frame sets to to the framed image.
func frame[T number](w window, to, image []T) {
	clear(to)
	inner(w, func(framed, at, n int) { copy(to[framed:framed+n], image[at:]) })
}

// unframe sets image to what is inside of the frame.
func unframe[T number](w window, image, from []T) {
	inner(w, func(framed, at, n int) { copy(image[at:at+n], from[framed:]) })
}

// inner calls f for each row of the image: where it is in the framed one, and in its own, and its length.
func inner(w window, f func(framed, at, n int)) {
	n := w.image.width * w.image.channels
	for y := range w.image.height {
		f(((y+w.pad)*w.framed().width+w.pad)*w.image.channels, y*n, n)
	}
}

// repeat fills v with copies of line.
func repeat[T number](v, line []T) {
	for n := copy(v, line); n > 0 && n < len(v); n *= 2 {
		copy(v[n:], v[:n])
	}
}
