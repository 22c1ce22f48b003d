package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// parallelism collects -parallelism: how much is done at the same time, on the
// whole and of a kind.
type parallelism struct {
	n      int // 0: the usual
	limits plan.Limits
}

func (p *parallelism) String() string { return "" }
func (p *parallelism) Type() string   { return "string" }

func (p *parallelism) Set(text string) error {
	name, number, named := strings.Cut(text, "=")
	if !named {
		name, number = "", text
	}
	n, err := strconv.Atoi(number)
	switch {
	case named && name == "":
		return errors.New("before the = a type, a provider or \"host\" is needed")
	case named && (err != nil || n < 1):
		return fmt.Errorf("after %s= a whole number is needed, from 1 on", name)
	case err != nil || n < 0:
		return errors.New("a whole number is needed, from 1 on, or 0 for the usual 10")
	case !named:
		p.n = n
		return nil
	}
	if p.limits == nil {
		p.limits = plan.Limits{}
	}
	p.limits[name] = n
	return nil
}

// check refuses limits for what no provider could have: most likely a slip of
// the keyboard.
func (p *parallelism) check(c providers.Catalogue) error {
	names := sources(c)
	for name := range p.limits {
		known := name == plan.PerHost || slices.ContainsFunc(names, func(source string) bool {
			short := source[strings.LastIndexByte(source, '/')+1:]
			return name == source || strings.HasSuffix(source, "/"+name) || strings.HasPrefix(name, short+"_")
		})
		if !known {
			return fmt.Errorf("-parallelism=%s=%d: there is no provider or type %q", name, p.limits[name], name)
		}
	}
	return nil
}
