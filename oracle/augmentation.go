package oracle

import (
	"errors"
	"fmt"
)

// Augmentation replaces the gradient of an image by the mean gradient of several views of it (augmentation
// multiplicity, De et al. 2022). The first view is the image. The others are shifted cyclically by up to Shift pixels
// each way, and Flip mirrors half of them. The number of the batch alone decides the views; they are the same for all
// records. A view is an order of the same numbers, so its norm is the image's. The zero value uses the image alone.
type Augmentation struct {
	Count int // of each record; 0 and 1: the image alone
	Shift int
	Flip  bool
}

// maxViews is the most views of a record.
const maxViews = 64

// Validate says what is wrong with the numbers.
func (v Augmentation) Validate() error {
	switch {
	case v.Count < 0 || v.Count > maxViews:
		return fmt.Errorf("views: found %d; write a whole number from 1 to %d", v.Count, maxViews)
	case v.Shift < 0:
		return fmt.Errorf("shift: found %d; write 0 or more pixels", v.Shift)
	case v.Count < 2 && (v.Shift > 0 || v.Flip):
		return errors.New("views: found one beside shift or flip; write 2 or more")
	case v.Count > 1 && v.Shift == 0 && !v.Flip:
		return fmt.Errorf("views: found %d without shift or flip; write 1, as they would be alike", v.Count)
	}
	return nil
}

// Of are the views in batch number batch of an image of that shape: rows, columns, and numbers beside each other at a
// point. Number j of view k is number Of[k][j] of the image. A record's numbers behind those of the image stay where
// they are.
func (v Augmentation) Of(shape []int, batch int) ([][]int32, error) {
	if err := v.Validate(); err != nil || v.Count < 2 {
		return nil, err
	}
	if len(shape) < 2 {
		return nil, fmt.Errorf("views: found %d; write 1, as the rows are no images of rows and columns", v.Count)
	}
	height, width, deep := shape[0], shape[1], 1
	for _, n := range shape[2:] {
		deep *= n
	}
	if v.Shift >= min(height, width) {
		return nil, fmt.Errorf("shift: found %d; write less than the %d pixels of a side", v.Shift, min(height, width))
	}
	draw := splitMix{at: uint64(batch) << 32}
	all := make([][]int32, v.Count)
	for k := range all {
		dy, dx, mirror := 0, 0, false
		if k > 0 {
			side := uint64(2*v.Shift + 1)
			dy, dx = int(draw.next()%side)-v.Shift, int(draw.next()%side)-v.Shift
			mirror = v.Flip && draw.next()%2 == 1
		}
		all[k] = make([]int32, 0, height*width*deep)
		for y := range height {
			for x := range width {
				from := x
				if mirror {
					from = width - 1 - x
				}
				at := ((y+dy+height)%height*width + (from+dx+width)%width) * deep
				for c := range deep {
					all[k] = append(all[k], int32(at+c))
				}
			}
		}
	}
	return all, nil
}
