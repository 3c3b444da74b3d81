package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// questions asks a person, line by line. Without a terminal the answers come from a file or a pipe; then the first
// wrong one ends the command, since the answers after it may belong to other questions.
type questions struct {
	ctx      context.Context
	lines    <-chan string
	w        io.Writer
	terminal bool
	given    []string // lines that were taken as answers in this part
	again    []string // lines to take once more, without asking: after one step back, or of an earlier session
}

// back is the answer that goes one question back.
const back = "<"

var errBack = errors.New("one question back")

// part asks some questions, from which a person can go back to earlier ones of the same part: then ask begins once more
// and takes the answers before. It must not write anything, and give the same questions for the same answers.
func (q *questions) part(again []string, ask func() error) error {
	q.given, q.again = nil, again
	for {
		if err := ask(); !errors.Is(err, errBack) {
			return err
		}
		q.given, q.again = nil, q.given[:len(q.given)-1]
	}
}

func newQuestions(c *cobra.Command) *questions {
	in := c.InOrStdin()
	lines := make(chan string)
	go func() { // so that Ctrl-C ends the command while it waits
		defer close(lines)
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadString('\n')
			if err != nil && line == "" {
				return
			}
			lines <- line
		}
	}()
	file, ok := in.(*os.File)
	return &questions{ctx: c.Context(), lines: lines, w: c.ErrOrStderr(), terminal: ok && term.IsTerminal(int(file.Fd()))}
}

var errAnswersEnd = errors.New("the answers end")

// say explains.
func (q *questions) say(format string, args ...any) {
	if len(q.again) == 0 {
		fmt.Fprintf(q.w, format+"\n", args...)
	}
}

// ask asks until check takes the answer. An empty answer stands for otherwise.
func (q *questions) ask(question, otherwise string, check func(answer string) error) (string, error) {
	for {
		if len(q.again) > 0 {
			line := q.again[0]
			q.again = q.again[1:]
			if answer := cmp.Or(strings.TrimSpace(line), otherwise); check(answer) == nil {
				q.given = append(q.given, line)
				return answer, nil
			}
			q.again = nil
		}
		fmt.Fprint(q.w, question)
		if otherwise != "" {
			fmt.Fprintf(q.w, " [%s]", otherwise)
		}
		fmt.Fprint(q.w, ": ")
		var line string
		more := true
		select {
		case <-q.ctx.Done():
			more = false
		case line, more = <-q.lines:
		}
		if !more || !q.terminal {
			fmt.Fprintln(q.w)
		}
		switch {
		case q.ctx.Err() != nil:
			return "", fmt.Errorf("stopped before an answer to %q (%w)", question, q.ctx.Err())
		case !more:
			return "", usageError("%w before %q", errAnswersEnd, question)
		}
		if strings.TrimSpace(line) == back {
			if len(q.given) > 0 {
				return "", errBack
			}
			q.say("  this is the first question of this part; there is none to go back to")
			continue
		}
		answer := cmp.Or(strings.TrimSpace(line), otherwise)
		err := check(answer)
		if err == nil {
			q.given = append(q.given, strings.TrimRight(line, "\r\n"))
			return answer, nil
		}
		if !q.terminal {
			return "", usageError("%s: %v", question, err)
		}
		q.say("  %v", err)
	}
}

// choose asks for one of the names; a unique prefix is enough.
func (q *questions) choose(question, otherwise string, names ...string) (chosen string, err error) {
	_, err = q.ask(question, otherwise, func(answer string) (err error) {
		chosen, err = oneOf(answer, names)
		return err
	})
	return chosen, err
}

// oneOf is the name that an answer is or begins.
func oneOf(answer string, names []string) (string, error) {
	var begin []string
	for _, name := range names {
		if name == answer {
			return name, nil
		}
		if answer != "" && strings.HasPrefix(name, answer) {
			begin = append(begin, name)
		}
	}
	if len(begin) != 1 {
		return "", allowed(answer, strings.Join(names, ", "))
	}
	return begin[0], nil
}

// column asks for a column by its name or its number in the list, from 1.
func (q *questions) column(question string, names []string) (i int, err error) {
	_, err = q.ask(question, "", func(answer string) error {
		if i = slices.Index(names, answer); i >= 0 {
			return nil
		}
		if n, err := strconv.Atoi(answer); err == nil && 1 <= n && n <= len(names) {
			i = n - 1
			return nil
		}
		return allowed(answer, fmt.Sprintf("the name of a column, or its number from 1 to %d", len(names)))
	})
	return i, err
}

// count asks for a whole number from 1 to most.
func (q *questions) count(question string, most int) (n int, err error) {
	_, err = q.ask(question, "", func(answer string) (err error) {
		if n, err = strconv.Atoi(strings.ReplaceAll(answer, ",", "")); err != nil || n < 1 || n > most {
			return allowed(answer, "a whole number from 1 to "+count(most))
		}
		return nil
	})
	return n, err
}

// name asks for one line of text that is not empty.
func (q *questions) name(question, otherwise string) (string, error) {
	return q.ask(question, otherwise, func(answer string) error {
		if answer == "" {
			return allowed(answer, "a name")
		}
		return nil
	})
}

func allowed(answer, what string) error {
	if answer == "" {
		return fmt.Errorf("an answer is needed: %s", what)
	}
	return fmt.Errorf("found %q; write %s", answer, what)
}
