package paper

import (
	"path"
	"strings"
)

// An Item of a paper is an algorithm, a statement, a figure or a table, and where it is in Sotto.
type Item struct {
	Name string // in the paper
	Says string // what it is, in a few words
	// Where are its places: a file of the repository, with #Name for a declaration of a Go file or #anchor for a section
	// of a page; or #id for a part of the page of results.
	Where []string
	Why   string // it has no place
}

// A Place is a place of an item, for a page.
type Place struct {
	Link
	Here bool // on the page itself
}

// Places are those of an item.
func (i Item) Places() (list []Place) {
	for _, w := range i.Where {
		file, at, _ := strings.Cut(w, "#")
		url := Repository + "/blob/main/" + file
		switch {
		case file == "":
			list = append(list, Place{Link{"this page, " + w, w}, true})
			continue
		case at != "" && path.Ext(file) == ".md":
			url += "#" + at
		}
		if at != "" && path.Ext(file) == ".go" {
			at = at + " in "
		} else if at != "" {
			file, at = file+"#"+at, ""
		}
		list = append(list, Place{Link{at + file, url}, false})
	}
	return list
}

// Missing are the items without a place.
func (e Experiment) Missing() (list []Item) {
	for _, i := range e.Contents {
		if len(i.Where) == 0 {
			list = append(list, i)
		}
	}
	return list
}

// Present are the items with a place.
func (e Experiment) Present() (list []Item) {
	for _, i := range e.Contents {
		if len(i.Where) > 0 {
			list = append(list, i)
		}
	}
	return list
}
