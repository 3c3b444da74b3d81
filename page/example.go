package page

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/sottodp/sotto/run/runlog"
)

// An example is a test image with what the model says of it.
type example struct {
	Picture      template.HTML
	Guess, Class string
	Confidence   string
	Wrong        bool
}

func exampleOf(e runlog.Example) example {
	return example{picture(e), e.Guess, e.Class, percent(e.Confidence, 1), e.Guess != e.Class}
}

// grays are the shades of a picture.
const grays = 8

// picture draws an image, dark on light, its shades as paths of the runs of pixels that have them.
func picture(e runlog.Example) template.HTML {
	if e.Width < 1 || len(e.Pixels)%e.Width != 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="example" viewBox="0 0 %d %d" role="img" aria-label="%s" shape-rendering="crispEdges">`,
		e.Width, len(e.Pixels)/e.Width,
		template.HTMLEscapeString("test image of class "+e.Class))
	for shade := 1; shade < grays; shade++ {
		var path strings.Builder
		for i := 0; i < len(e.Pixels); {
			end := i + 1 // of the run, within its line
			for end%e.Width != 0 && shadeOf(e.Pixels[end]) == shadeOf(e.Pixels[i]) {
				end++
			}
			if shadeOf(e.Pixels[i]) == shade {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", i%e.Width, i/e.Width, end-i, end-i)
			}
			i = end
		}
		if path.Len() > 0 {
			fmt.Fprintf(&b, `<path fill-opacity="%.2f" d="%s"/>`, float64(shade)/(grays-1), path.String())
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func shadeOf(pixel byte) int { return int(pixel) * grays / 256 }
