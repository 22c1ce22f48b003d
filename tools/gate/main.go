package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it goes on
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends this process at once
	if err := execute(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, args []string) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "run":
		return runGate(ctx, root)
	case len(args) == 1 && args[0] == "nightly":
		return runNightly(ctx, root)
	case len(args) > 3 && args[0] == "suite" && args[1] == "-run":
		return runSuites(ctx, root, args[2], args[3:])
	case len(args) > 1 && args[0] == "suite":
		return runSuites(ctx, root, "", args[1:])
	case len(args) == 1 && args[0] == "elsewhere":
		return elsewhere(root)
	case len(args) == 1 && args[0] == "list":
		return list()
	}
	return errors.New("usage: gate run | nightly | suite [-run REGEXP] NAME… | elsewhere | list")
}

// findRoot finds the module's root from a folder in it.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.Contains(string(text), "module "+module+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("run this in a checkout of stoke")
		}
	}
}

// list prints the suites, with what each cost when it was last run whole on this machine.
func list() error {
	c, err := openCache()
	if err != nil {
		return err
	}
	fmt.Printf("%-24s %-8s %7s %7s %10s  %s\n", "suite", "run by", "wall s", "CPU s", "on", "about")
	allWall, allCPU, unknown := 0, 0, 0
	for _, s := range suites() {
		when := "nightly"
		if s.gate {
			when = "gate"
		}
		wall, cpu, day := c.cost(s.name)
		if allWall, allCPU = allWall+wall, allCPU+cpu; day == "" {
			unknown++
			fmt.Printf("%-24s %-8s %7s %7s %10s  %s\n", s.name, when, "", "", "", s.about)
			continue
		}
		fmt.Printf("%-24s %-8s %7d %7d %10s  %s\n", s.name, when, wall, cpu, day, s.about)
	}
	fmt.Printf("%-24s %-8s %7d %7d %10s  without the %d suites that have not run whole here\n", "all", "", allWall, allCPU, "", unknown)
	return nil
}

// runGate runs the stages of the gate in a checkout that is kept for it, so
// that the clock times of files, on which Go's cache of results depends, stay
// those of their last change. It stops at the first failure, and its last line
// names the stage, the package and the test.
func runGate(ctx context.Context, root string) error {
	c, err := openCache()
	if err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	tree, err := c.checkout(root)
	if err != nil { // the results are the same, Go's cache of them is of less use
		fmt.Printf("the gate works in %s itself, for a checkout of its own could not be made: %v\n", root, err)
		tree = root
	}
	r, err := newRunner(ctx, tree, c)
	if err != nil {
		return err
	}
	if names := c.flaky(); len(names) > 0 {
		fmt.Printf("flaky on this machine:\n\t%s\n", strings.Join(names, "\n\t"))
	}
	var results []result
	for _, s := range suites() {
		if !s.gate {
			continue
		}
		res := r.announce(&s, results)
		results = append(results, res)
		if res.outcome == interrupted {
			table(results)
			return errInterrupted
		}
		if res.outcome == failed {
			table(results)
			return fmt.Errorf("FAILED %s %s", res.name, res.detail)
		}
	}
	table(results)
	fmt.Println("passed")
	return nil
}

// runNightly runs every suite. None stops another.
func runNightly(ctx context.Context, root string) error {
	return runEach(ctx, root, false, "", func(s suite) bool { return !s.daily })
}

// runSuites runs suites by name, passed before or not, and of their tests only
// those that only, an expression of -test.run, matches.
func runSuites(ctx context.Context, root, only string, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(suites(), func(s suite) bool { return s.name == name }) {
			return fmt.Errorf("there is not a suite %q: gate list names them", name)
		}
	}
	return runEach(ctx, root, true, only, func(s suite) bool { return slices.Contains(names, s.name) })
}

func runEach(ctx context.Context, root string, force bool, only string, chosen func(suite) bool) error {
	c, err := openCache()
	if err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	r, err := newRunner(ctx, root, c)
	if err != nil {
		return err
	}
	r.force, r.build, r.partial = force, true, only != ""
	var results []result
	for _, s := range suites() {
		if chosen(s) && ctx.Err() == nil {
			s.only = cmp.Or(only, s.only)
			results = append(results, r.announce(&s, results))
			r.flaky = 0
		}
	}
	table(results)
	if ctx.Err() != nil {
		return errInterrupted
	}
	for _, res := range results {
		if res.outcome == failed {
			return fmt.Errorf("FAILED %s %s", res.name, res.detail)
		}
	}
	return nil
}

func (r *runner) announce(s *suite, before []result) result {
	var spent time.Duration
	for _, res := range before {
		spent += res.wall
	}
	fmt.Printf("\n=== %s: %s (%.0f s so far)\n", s.name, s.about, spent.Seconds())
	res := r.run(s)
	fmt.Printf("=== %s: %s\n", res.name, strings.TrimSpace(string(res.outcome)+" "+res.detail))
	return res
}

// table prints how suites ended and what they cost.
func table(results []result) {
	fmt.Printf("\n%-26s %8s %8s  %s\n", "suite", "wall s", "CPU s", "outcome")
	var wall, cpu time.Duration
	for _, res := range results {
		wall, cpu = wall+res.wall, cpu+res.cpu
		fmt.Printf("%-26s %8.0f %8.0f  %s\n", res.name, res.wall.Seconds(), res.cpu.Seconds(), strings.TrimSpace(string(res.outcome)+" "+res.detail))
	}
	fmt.Printf("%-26s %8.0f %8.0f\n", "all", wall.Seconds(), cpu.Seconds())
}
