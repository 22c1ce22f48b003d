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

// usual is how much is done at the same time where nobody says otherwise.
const usual = 10

// limitsFor returns how much is done at the same time by a command that uses these
// providers, and the limits by kind. More than usual only comes of providers
// that bear it, and only where the command line leaves the number to us.
func (p *parallelism) limitsFor(sources []string, c providers.Catalogue) (int, plan.Limits) {
	n := usual
	for _, source := range sources {
		n = max(n, c[source].Limits.AtOnce)
	}
	if p.n > 0 || n == usual {
		return p.n, p.limits
	}
	limits := plan.Limits{}
	for _, source := range sources {
		if own := c[source].Limits; own.Operations == 0 {
			limits[source] = max(usual, own.AtOnce)
		}
	}
	for name, most := range p.limits {
		for _, source := range sources { // by whatever name, what was said counts
			if name == source || strings.HasSuffix(source, "/"+name) {
				delete(limits, source)
			}
		}
		limits[name] = most
	}
	return n, limits
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
			return fmt.Errorf("-parallelism=%s=%d: no provider or type is called %q", name, p.limits[name], name)
		}
	}
	return nil
}
