// Package tasks reads the tables of docs/how-to/tasks.md for the tests that run their rows.
package tasks

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// A Row is a task of a table: what a person wants, what does it, and what is seen then.
type Row struct {
	Line          int // of the page
	Task, Do, See string
}

// Read returns the rows of the table below a heading, as "## Browser", of the page in file.
func Read(file, heading string) ([]Row, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var rows []Row
	inside := false
	for i, line := range strings.Split(string(b), "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			inside = line == heading
		case inside && strings.HasPrefix(line, "| "):
			cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|")
			if len(cells) != 3 {
				return nil, fmt.Errorf("%s:%d: found %d cells; write three", file, i+1, len(cells))
			}
			for j := range cells {
				cells[j] = strings.TrimSpace(strings.ReplaceAll(cells[j], "\x00", "|"))
			}
			rows = append(rows, Row{i + 1, cells[0], cells[1], cells[2]})
		}
	}
	if len(rows) < 2 {
		return nil, fmt.Errorf("%s: found no tasks below %q", file, heading)
	}
	return rows[1:], nil // the first is the head
}

var (
	code = regexp.MustCompile("`([^`]+)`")
	bold = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// Code returns what is code in a cell.
func Code(cell string) []string { return all(code, cell) }

// Bold returns what is bold in a cell.
func Bold(cell string) []string { return all(bold, cell) }

func all(r *regexp.Regexp, cell string) []string {
	var found []string
	for _, m := range r.FindAllStringSubmatch(cell, -1) {
		found = append(found, m[1])
	}
	return found
}
