package page

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"
)

// A spot is a place in a page.
type spot uint8

const (
	inText spot = iota
	inTag
	inValue   // of an attribute that is text
	inAddress // at the start of an address
	inPart    // of an address that has begun
	inStyle
	inScript
)

// Attributes that may be filled in.
var (
	texts     = []string{"alt", "class", "colspan", "content", "datetime", "id", "name", "title", "value"}
	addresses = []string{"action", "href", "src"}
)

// A state is what was read of a page up to a point.
type state struct {
	spot
	element   string // whose tag was opened last; "/x" for its end
	attribute string // whose value is being read
}

// find goes through a template, which begins and ends in text, and notes the spots.
func (t *Template) find(root *parse.ListNode) error {
	end, err := t.through(root, state{})
	if err == nil && end.spot != inText {
		err = fmt.Errorf("it ends inside a tag")
	}
	return err
}

func (t *Template) through(list *parse.ListNode, s state) (state, error) {
	if list == nil {
		return s, nil
	}
	for _, n := range list.Nodes {
		var err error
		switch n := n.(type) {
		case *parse.TextNode:
			s, err = read(string(n.Text), s)
		case *parse.ActionNode:
			s, err = t.note(n, s)
		case *parse.IfNode:
			s, err = t.branches(&n.BranchNode, s, false)
		case *parse.WithNode:
			s, err = t.branches(&n.BranchNode, s, false)
		case *parse.RangeNode:
			s, err = t.branches(&n.BranchNode, s, true)
		case *parse.TemplateNode:
			if t.trees[n.Name] == nil || s.spot != inText {
				err = fmt.Errorf("%v: there is no such template, or it stands in a tag", n)
			}
		default:
			err = fmt.Errorf("%v is not part of the language here", n)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// branches are to end alike, and those of a loop as they began.
func (t *Template) branches(b *parse.BranchNode, s state, loop bool) (state, error) {
	one, err := t.through(b.List, s)
	if err != nil {
		return s, err
	}
	other, err := t.through(b.ElseList, s)
	if err == nil && (one != other || loop && one != s) {
		err = fmt.Errorf("%v: its branches end at different places of a page", b.Pipe)
	}
	return one, err
}

// note says where an action stands. One that sets a variable fills nothing in.
func (t *Template) note(n *parse.ActionNode, s state) (state, error) {
	if len(n.Pipe.Decl) > 0 {
		return s, nil
	}
	if s.spot == inTag || s.spot == inScript {
		return s, fmt.Errorf("%v stands in a tag or a script", n)
	}
	if s.spot == inValue && !slices.Contains(texts, s.attribute) && !strings.HasPrefix(s.attribute, "aria-") && !strings.HasPrefix(s.attribute, "data-") {
		return s, fmt.Errorf("%v stands in attribute %s, which is not among those that may be filled in", n, s.attribute)
	}
	t.spots[n] = s.spot
	return s, nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-"

// read goes on through literal text.
func read(text string, s state) (state, error) {
	if s.spot == inTag && text != "" && strings.ContainsAny(text[:1], letters+`="`) {
		return s, fmt.Errorf("a name is cut in two before %.20q", text)
	}
	for text != "" {
		switch s.spot {
		case inText:
			i := strings.IndexByte(text, '<')
			if i < 0 {
				return s, nil
			}
			text = text[i+1:]
			n := 0
			for n < len(text) && (n == 0 && (text[0] == '/' || text[0] == '!') || strings.IndexByte(letters+"0123456789", text[n]) >= 0) {
				n++
			}
			if n == 0 || strings.HasPrefix(text, "!-") {
				return s, fmt.Errorf("a tag has no name, or is a comment: %.20q", text)
			}
			s, text = state{inTag, strings.ToLower(text[:n]), ""}, text[n:]
		case inStyle, inScript:
			i := strings.Index(text, "</"+s.element)
			if i < 0 {
				return s, nil
			}
			s, text = state{}, text[i:]
		case inTag:
			i := strings.IndexAny(text, `>"'`)
			if i < 0 {
				return s, nil
			}
			before, mark := text[:i], text[i]
			text = text[i+1:]
			switch mark {
			case '>':
				switch s.element {
				case "style":
					s.spot = inStyle
				case "script":
					s.spot = inScript
				default:
					s = state{}
				}
			case '"':
				name, ok := strings.CutSuffix(before, "=")
				name = strings.ToLower(name[strings.LastIndexAny(name, " \t\n")+1:])
				if !ok || name == "" {
					return s, fmt.Errorf("a value without the name of its attribute after %.40q", before)
				}
				s.spot, s.attribute = inValue, name
				if slices.Contains(addresses, name) {
					s.spot = inAddress
				}
			default:
				return s, fmt.Errorf("a value in single quotes after %.40q", before)
			}
		default: // the value of an attribute
			value, rest, closed := strings.Cut(text, `"`)
			if text = rest; closed {
				s.spot, s.attribute = inTag, ""
				continue
			}
			if s.spot == inAddress && value != "" {
				if !strings.ContainsAny(value, "/#?") {
					return s, fmt.Errorf("an address that begins with %q may become any", value)
				}
				s.spot = inPart
			}
			return s, nil
		}
	}
	return s, nil
}
