package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/schema"
)

const continueUsage = "go on from the answers that an earlier init kept in a draft"

// draftHead is the first line of a draft: the answers of a session that ended early, which are public as a schema is.
// The second line names the table's columns, and each other one is an answer.
const draftHead = "# sotto init: answers so far; the next init continues with them"

// draftName is the draft of a table, in this directory.
func draftName(table string) string { return schemaBase(table) + ".draft" }

// keepDraft keeps the answers that were given before err, if it is that they ended or that one was wrong.
func keepDraft(q *questions, table string, o *access.Outline, command string, err error) error {
	if len(q.given) == 0 || q.ctx.Err() != nil {
		return err
	}
	name := draftName(table)
	text := append([]string{draftHead, "# " + columnNames(o)}, q.given...)
	if e := newfile.ReplaceShared(name, []byte(strings.Join(text, "\n")+"\n")); e != nil {
		return errors.Join(err, e)
	}
	before := "the answer before it is"
	if n := len(q.given); n > 1 {
		before = fmt.Sprintf("the %d answers before it are", n)
	}
	return fmt.Errorf("%w; %s in %s: `%s %s --continue` goes on from there", err, before, name, command,
		data.Public(table))
}

// draft returns the answers of an earlier session to go on from: if a flag says so, or somebody at the terminal.
func draft(q *questions, table string, o *access.Outline, resume bool) ([]string, error) {
	name := draftName(table)
	if !resume && !q.terminal {
		return nil, nil
	}
	b, err := readfile.All(name, schema.MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && resume:
		return nil, usageError("--continue: there is no draft %s; leave --continue out to begin", name)
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	wrong := ""
	switch {
	case len(lines) < 3 || lines[0] != draftHead:
		wrong = "is no draft of sotto init"
	case lines[1] != "# "+columnNames(o):
		wrong = "is of a table with other columns"
	}
	if wrong != "" && resume {
		return nil, usageError("--continue: %s %s; remove it, or leave --continue out", name, wrong)
	} else if wrong != "" {
		return nil, nil
	}
	if !resume {
		answer, err := q.choose(fmt.Sprintf("%s has %d answers of an earlier session; continue with them: yes or no", name,
			len(lines)-2), "yes", "yes", "no")
		if err != nil || answer == "no" {
			return nil, err
		}
	}
	return lines[2:], nil
}

// removeDraft removes the draft of a table whose schema is complete.
func removeDraft(table string) error {
	b, err := readfile.All(draftName(table), schema.MaxFile)
	if err != nil || !strings.HasPrefix(string(b), draftHead+"\n") {
		return nil // there is none
	}
	return os.Remove(draftName(table))
}

// columnNames are the names in one line.
func columnNames(o *access.Outline) string {
	var names []string
	for _, c := range o.Columns {
		names = append(names, c.Name)
	}
	b, err := json.Marshal(names)
	if err != nil {
		panic("cli: " + err.Error()) // cannot happen: they are strings
	}
	return string(b)
}
