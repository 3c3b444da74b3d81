package cli

import (
	"bufio"
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
	return &questions{c.Context(), lines, c.ErrOrStderr(), ok && term.IsTerminal(int(file.Fd()))}
}

var errAnswersEnd = errors.New("the answers end")

// say explains.
func (q *questions) say(format string, args ...any) { fmt.Fprintf(q.w, format+"\n", args...) }

// ask asks until check takes the answer. An empty answer stands for otherwise.
func (q *questions) ask(question, otherwise string, check func(answer string) error) (string, error) {
	for {
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
		answer := strings.TrimSpace(line)
		if answer == "" {
			answer = otherwise
		}
		err := check(answer)
		if err == nil {
			return answer, nil
		}
		if !q.terminal {
			return "", usageError("%s: %v", question, err)
		}
		q.say("  %v", err)
	}
}

// choose asks for one of the names; the beginning of one is enough where no other begins so.
func (q *questions) choose(question, otherwise string, names ...string) (chosen string, err error) {
	_, err = q.ask(question, otherwise, func(answer string) error {
		var begin []string
		for _, name := range names {
			if name == answer {
				begin = []string{name}
				break
			}
			if answer != "" && strings.HasPrefix(name, answer) {
				begin = append(begin, name)
			}
		}
		if len(begin) != 1 {
			return allowed(answer, strings.Join(names, ", "))
		}
		chosen = begin[0]
		return nil
	})
	return chosen, err
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
