package dataset

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxLabel is how many bytes a label that is text may have.
const maxLabel = 256

// labels reads the labels of a table's records, one by one. They are whole
// numbers, or texts that stand for classes: the first one settles that. With
// numbers they are any numbers, and no classes.
type labels struct {
	begun   bool
	text    bool
	numbers bool             // labels are numbers, not classes
	classes map[string]int32 // of texts; nil while they are collected
	name    string           // of the last record, where labels are texts
	class   int32            // of the last record, where it is known
	value   float32          // of the last record, where labels are numbers
}

func (l *labels) read(field string) error {
	if l.numbers {
		v, err := number(field)
		if err != nil {
			return errors.New("it is not a finite number, which label_type \"number\" wants")
		}
		l.value = float32(v)
		return nil
	}
	text := isText(field)
	if !l.begun {
		l.begun, l.text = true, text
	}
	switch {
	case field == "":
		return errors.New("it is empty")
	case text != l.text:
		return errors.New("some labels are numbers, and others text: want one kind")
	case len(field) > maxLabel:
		return fmt.Errorf("it has %d bytes: want at most %d", len(field), maxLabel)
	case !text:
		return l.readNumber(field)
	case l.classes == nil:
		l.name = field
		return nil
	}
	class, known := l.classes[field]
	if !known {
		return errors.New("no training record has it")
	}
	l.name, l.class = field, class
	return nil
}

func (l *labels) readNumber(field string) error {
	v, err := number(field)
	if err != nil || v != math.Trunc(v) || v < 0 || v >= maxClasses {
		return fmt.Errorf("want a whole number from 0 to %d, or text", maxClasses-1)
	}
	l.class = int32(v)
	return nil
}

// isText reports whether a label does not look like a number.
func isText(field string) bool {
	_, err := strconv.ParseFloat(field, 64)
	return errors.Is(err, strconv.ErrSyntax) && field != ""
}

// classNames is the set of the labels that are texts.
type classNames map[string]bool

func (n classNames) add(name string) error {
	if n[name] {
		return nil
	}
	if len(n) == maxClasses {
		return fmt.Errorf("more than %d different labels: is the label column right?", maxClasses)
	}
	n[strings.Clone(name)] = true // name is a part of its whole line
	return nil
}

// sorted returns the names, and the class of each.
func (n classNames) sorted() ([]string, map[string]int32) {
	names := slices.Sorted(maps.Keys(n))
	classes := make(map[string]int32, len(names))
	for i, name := range names {
		classes[name] = int32(i)
	}
	return names, classes
}
